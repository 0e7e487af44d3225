package pg

import (
	"database/sql/driver"
	"fmt"
	"time"
)

// Time is a moment that a column may lack: the zero time is NULL there and back.
type Time struct{ time.Time }

// Value implements driver.Valuer.
func (t Time) Value() (driver.Value, error) {
	if t.IsZero() {
		return nil, nil
	}
	return t.Time, nil
}

// Scan implements sql.Scanner.
func (t *Time) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		t.Time = time.Time{}
	case time.Time:
		t.Time = v.UTC()
	default:
		return fmt.Errorf("scan a time: got %T", src)
	}
	return nil
}
