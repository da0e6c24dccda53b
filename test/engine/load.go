package engine

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/moby/moby/client"
)

// Load gives an archive of images to an engine. An image that it refuses is an
// error in the answer.
func Load(ctx context.Context, docker *client.Client, image io.Reader) (err error) {
	answer, err := docker.ImageLoad(ctx, image, client.ImageLoadWithQuiet(true))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, answer.Close()) }()
	return Read(answer)
}

// Read reads what an engine says of a load or a build to its end, in which an
// error may be.
func Read(answer io.Reader) error {
	decoder := json.NewDecoder(answer)
	for {
		var message struct {
			Error string `json:"error"`
		}
		switch err := decoder.Decode(&message); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case message.Error != "":
			return errors.New(message.Error)
		}
	}
}
