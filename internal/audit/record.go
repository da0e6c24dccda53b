// Package audit keeps the record of what a gateway decided and did: starts,
// stops, approvals, denials, calls and their results.
//
// Each gateway appends to its own files in one folder, one line of JSON for
// each record. The hash of a record covers the record and the hash of the one
// before it, across files, so that [Verify] tells a record that was edited,
// deleted, inserted or moved, and names the file and the line. A small file
// beside them remembers the number and the hash of the last record, because a
// chain alone cannot show that its end was cut off.
//
// The record holds digests and sizes, never arguments or results. (A digest of
// a short, guessable argument can be found by trying; it is no secret store.)
//
// A record that cannot be written is an error, and whoever appends must then
// refuse what the record was for. The writer tries again with the next record,
// and never leaves half a line in front of it.
//
// What stays undetectable: whoever may write the folder can rewrite the whole
// chain, or cut the end and rewrite the file that remembers it, or remove all
// files of a gateway. Records are handed to the kernel, not forced to the disk:
// they survive the death of the process, SIGKILL included, but the last ones
// may be lost with the power, and Verify then reports them as missing. The
// file that remembers the last record follows within 10 ms: of a gateway that
// was killed, records of its last 10 ms that are cut off are not missed.
package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// A Kind is what a record is about.
type Kind string

// The kinds of record. [KindOpen] is the writer's own: it is the first record
// of each file and says where the chain goes on from.
const (
	KindOpen       Kind = "open"
	KindStart      Kind = "start"
	KindStop       Kind = "stop"
	KindQuestion   Kind = "question"
	KindApproval   Kind = "approval"
	KindDenial     Kind = "denial"
	KindRevocation Kind = "revocation"
	KindToken      Kind = "token"
	KindLogin      Kind = "login"
	KindCall       Kind = "call"
	KindResult     Kind = "result"
)

// A Record is one thing that happened. [Writer.Append] fills in Seq, Gateway,
// Prev and Hash, and Time where it is zero.
type Record struct {
	// Seq counts the records of a gateway from 1.
	Seq uint64 `json:"seq"`
	// Time is in UTC.
	Time      time.Time `json:"time"`
	Gateway   string    `json:"gateway"`
	Session   string    `json:"session,omitempty"`
	Principal string    `json:"principal,omitempty"`
	Kind      Kind      `json:"kind"`
	Server    string    `json:"server,omitempty"`
	Tool      string    `json:"tool,omitempty"`
	// Arguments is the [Digest] of the arguments' bytes.
	Arguments string `json:"arguments,omitempty"`
	// Outcome is a word such as "ok", "error" or "denied".
	Outcome string `json:"outcome,omitempty"`
	// Code is the stable code of a refusal or failure, such as
	// "APPROVAL_DENIED".
	Code string `json:"code,omitempty"`
	// DurationUS is in microseconds.
	DurationUS int64 `json:"duration_us,omitempty"`
	// Bytes is the size of the result.
	Bytes int64 `json:"bytes,omitempty"`
	// Detail holds what else an auditor needs, such as an image's digest.
	Detail map[string]string `json:"detail,omitempty"`

	// Prev is the Hash of the record before; empty for the first.
	Prev string `json:"prev"`
	// Hash is the hex SHA-256 of Prev followed by the record's JSON without
	// Hash, as it stands in the file.
	Hash string `json:"hash,omitempty"`
}

// Digest returns "sha256:" and the hex digest of b, as a record names
// arguments.
func Digest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// maxLine bounds a line of a file, its newline included.
const maxLine = 64 << 10

// ErrTooLong says that a record is over 64 KiB. It is not written.
var ErrTooLong = errors.New("record over 64 KiB")

// The last member of each line. Everything before it is what the hash covers.
const (
	hashHead = `,"hash":"`
	hashTail = `"}`
	hashSize = len(hashHead) + 2*sha256.Size + len(hashTail)
)

// encode returns the line of r, whose Hash is not looked at, and its hash.
func encode(r Record) (line []byte, hash string, err error) {
	r.Hash = ""
	body, err := json.Marshal(r)
	if err != nil {
		return nil, "", err
	}
	hash = chain(r.Prev, body)
	line = append(body[:len(body)-1], hashHead+hash+hashTail+"\n"...)
	if len(line) > maxLine {
		return nil, "", ErrTooLong
	}
	return line, hash, nil
}

// chain returns the hash of a record: body is its JSON without the hash.
func chain(prev string, body []byte) string {
	digest := sha256.New()
	digest.Write([]byte(prev))
	digest.Write(body)
	return hex.EncodeToString(digest.Sum(nil))
}

// ParseRecord reads one line, without its newline, and checks it against its
// hash.
func ParseRecord(line []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(line, &r); err != nil {
		return Record{}, fmt.Errorf("no record: %w", err)
	}
	cut := len(line) - hashSize
	if cut < 1 || !bytes.HasPrefix(line[cut:], []byte(hashHead)) || r.Hash != string(line[cut+len(hashHead):len(line)-len(hashTail)]) {
		return Record{}, errors.New("no record: it does not end in its hash")
	}
	body := append(bytes.Clone(line[:cut]), '}')
	if chain(r.Prev, body) != r.Hash {
		return Record{}, fmt.Errorf("record %d: its content does not match its hash", r.Seq)
	}
	return r, nil
}
