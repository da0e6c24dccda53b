package store

// For the tests in package store_test.

// Exec runs a statement on the open database.
func (db *DB) Exec(statement string) error {
	_, err := db.sql.Exec(statement)
	return err
}

// Unframe cuts a frame, and Frame makes one.
var (
	Frame       = frame
	Unframe     = unframe
	FrameOffer  = frameOffer
	FramePins   = framePins
	UnframePins = unframePins
)

// UnframeOffer reads a framed offer.
var UnframeOffer = unframeOffer

// NewestSchema is the version of the last migration.
var NewestSchema = newestSchema
