package owner_test

import (
	"errors"
	"image"
	"image/color"
	"image/png"
	"os"
	"slices"
	"testing"
)

// shrink makes a picture of a page small enough for the repository: the empty
// rows at its end go, and its colours become the 256 that it has most of.
func shrink(t *testing.T, path string) {
	t.Helper()
	if path == "" {
		return
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	full, err := png.Decode(file)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	bounds := full.Bounds()
	bounds.Max.Y = min(bounds.Max.Y, lastRow(full)+48)
	small := image.NewPaletted(bounds, palette(full))
	near := map[color.RGBA]uint8{}
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			c := rgba(full, x, y)
			i, ok := near[c]
			if !ok {
				i = uint8(small.Palette.Index(c))
				near[c] = i
			}
			small.SetColorIndex(x, y, i)
		}
	}
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := errors.Join(encoder.Encode(out, small), out.Close()); err != nil {
		t.Fatal(err)
	}
}

func rgba(i image.Image, x, y int) color.RGBA {
	return color.RGBAModel.Convert(i.At(x, y)).(color.RGBA)
}

// lastRow is the last row that isn't all of one colour.
func lastRow(i image.Image) int {
	b := i.Bounds()
	for y := b.Max.Y - 1; y > b.Min.Y; y-- {
		for x := b.Min.X + 1; x < b.Max.X; x++ {
			if rgba(i, x, y) != rgba(i, b.Min.X, y) {
				return y
			}
		}
	}
	return b.Max.Y
}

// palette has the 256 colours that a picture has most of.
func palette(i image.Image) color.Palette {
	b, count := i.Bounds(), map[color.RGBA]int{}
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			count[rgba(i, x, y)]++
		}
	}
	colours := make([]color.RGBA, 0, len(count))
	for c := range count {
		colours = append(colours, c)
	}
	slices.SortFunc(colours, func(a, b color.RGBA) int { return count[b] - count[a] })
	var p color.Palette
	for _, c := range colours[:min(256, len(colours))] {
		p = append(p, c)
	}
	return p
}
