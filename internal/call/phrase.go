package call

import "errors"

// Phrased returns a failure of ours with the commands in it as they are typed
// where the gateway runs, which phrase knows; nil is as they are. What a server
// said stays as it is.
func Phrased(err error, phrase func(text string) string) error {
	if code := Code(err); phrase == nil || code == "" || code == CodeCancelled {
		return err
	}
	return &phrasedError{err: err, phrase: phrase}
}

// A phrasedError is an error in other words.
type phrasedError struct {
	err    error
	phrase func(text string) string
}

// Error returns the error's text in the other words.
func (e *phrasedError) Error() string { return e.phrase(e.err.Error()) }

// Unwrap returns the error itself.
func (e *phrasedError) Unwrap() error { return e.err }

// Hint returns the error's hint in the other words.
func (e *phrasedError) Hint() string {
	var hinted interface{ Hint() string }
	if !errors.As(e.err, &hinted) {
		return ""
	}
	return e.phrase(hinted.Hint())
}
