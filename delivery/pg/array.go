package pg

import (
	"database/sql/driver"
	"encoding/binary"
	"time"
)

// The object ids of the element types, fixed in PostgreSQL's pg_type.dat.
const (
	oidBool        = 16
	oidBytea       = 17
	oidInt8        = 20
	oidText        = 25
	oidTimestamptz = 1184
	oidUUID        = 2950
)

// Array parameters. Each goes out in PostgreSQL's binary array format, which
// costs half the time of the text that pq.Array writes. They need
// binary_parameters=yes, which Open sets.
type (
	Int8s  []int64
	Bools  []bool
	Texts  []string
	Byteas [][]byte
	Times  []time.Time
	UUIDs  [][16]byte
)

// postgresEpoch is what timestamptz counts its microseconds from.
var postgresEpoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// header writes one dimension of n elements without NULLs.
func header(n, oid, room int) []byte {
	b := make([]byte, 0, 20+room)
	dims := uint32(1)
	if n == 0 {
		dims = 0
	}
	b = binary.BigEndian.AppendUint32(b, dims)
	b = binary.BigEndian.AppendUint32(b, 0) // no NULLs
	b = binary.BigEndian.AppendUint32(b, uint32(oid))
	if n == 0 {
		return b
	}
	b = binary.BigEndian.AppendUint32(b, uint32(n))
	return binary.BigEndian.AppendUint32(b, 1) // lower bound
}

// Value implements driver.Valuer.
func (a Int8s) Value() (driver.Value, error) {
	b := header(len(a), oidInt8, 12*len(a))
	for _, v := range a {
		b = binary.BigEndian.AppendUint32(b, 8)
		b = binary.BigEndian.AppendUint64(b, uint64(v))
	}
	return b, nil
}

// Value implements driver.Valuer.
func (a Bools) Value() (driver.Value, error) {
	b := header(len(a), oidBool, 5*len(a))
	for _, v := range a {
		b = binary.BigEndian.AppendUint32(b, 1)
		if v {
			b = append(b, 1)
		} else {
			b = append(b, 0)
		}
	}
	return b, nil
}

// Value implements driver.Valuer.
func (a Texts) Value() (driver.Value, error) { return variable(a, oidText), nil }

// Value implements driver.Valuer.
func (a Byteas) Value() (driver.Value, error) { return variable(a, oidBytea), nil }

func variable[E ~string | ~[]byte](a []E, oid int) []byte {
	room := 0
	for _, v := range a {
		room += 4 + len(v)
	}
	b := header(len(a), oid, room)
	for _, v := range a {
		b = binary.BigEndian.AppendUint32(b, uint32(len(v)))
		b = append(b, v...)
	}
	return b
}

// Value implements driver.Valuer. Times are cut to microseconds.
func (a Times) Value() (driver.Value, error) {
	b := header(len(a), oidTimestamptz, 12*len(a))
	for _, v := range a {
		b = binary.BigEndian.AppendUint32(b, 8)
		b = binary.BigEndian.AppendUint64(b, uint64(v.UnixMicro()-postgresEpoch.UnixMicro()))
	}
	return b, nil
}

// Value implements driver.Valuer.
func (a UUIDs) Value() (driver.Value, error) {
	b := header(len(a), oidUUID, 20*len(a))
	for _, v := range a {
		b = binary.BigEndian.AppendUint32(b, 16)
		b = append(b, v[:]...)
	}
	return b, nil
}
