package bots

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
)

// Sealer encrypts what must be kept but not be readable in the database
// (AES-256-GCM, a random nonce in front).
type Sealer struct{ aead cipher.AEAD }

// ParseKey reads MYBOTS_SECRET_KEY: 32 bytes as hex or base64, padded or not,
// in either alphabet.
func ParseKey(text string) ([]byte, error) {
	for _, decode := range []func(string) ([]byte, error){
		hex.DecodeString,
		base64.StdEncoding.DecodeString, base64.RawStdEncoding.DecodeString,
		base64.URLEncoding.DecodeString, base64.RawURLEncoding.DecodeString,
	} {
		if key, err := decode(text); err == nil && len(key) == 32 {
			return key, nil
		}
	}
	return nil, errors.New("must be 32 bytes as base64 or hex")
}

// NewSealer returns a sealer with a key of 32 bytes.
func NewSealer(key []byte) (*Sealer, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("use the secret key: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("use the secret key: %w", err)
	}
	return &Sealer{aead: aead}, nil
}

// Derive returns a key of 32 bytes for another purpose, so that no key serves two.
func Derive(key []byte, purpose string) []byte {
	sum := sha256.Sum256(append([]byte("mybots "+purpose+"\n"), key...))
	return sum[:]
}

// Seal encrypts value for the place that it belongs to: moved elsewhere it
// doesn't open.
func (s *Sealer) Seal(value []byte, place string) []byte {
	return s.aead.Seal(nil, nil, value, []byte(place))
}

// Open decrypts what Seal made for the same place.
func (s *Sealer) Open(sealed []byte, place string) ([]byte, error) {
	value, err := s.aead.Open(nil, nil, sealed, []byte(place))
	if err != nil {
		return nil, fmt.Errorf("open a sealed value: %w", err)
	}
	return value, nil
}
