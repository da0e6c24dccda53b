package pull

import (
	"context"

	"github.com/moby/moby/api/types/jsonstream"
	"github.com/moby/moby/client"
)

// A Progress is how far a pull is.
type Progress struct {
	Ref string
	// Status is the engine's own word for what it did last, such as
	// "Downloading".
	Status string
	// Done and Total are the bytes downloaded and to download of all layers
	// whose size is known by now; Total may grow.
	Done, Total int64
	// Layers is how many layers the engine has named by now, LayersDone how
	// many of them it has.
	Layers, LayersDone int
}

// pull lets the engine pull the image and reports how far it is.
func (i *Images) pull(ctx context.Context, image imageRef, progress func(Progress)) error {
	auth, err := credentials(i.configDir, image.named)
	if err != nil {
		// Most images need none, and the registry says so if this one does.
		i.log.WarnContext(ctx, "registry credentials not readable", "image", image.given, "err", err)
	}
	response, err := i.conn.API.ImagePull(ctx, image.engine, client.ImagePullOptions{RegistryAuth: auth})
	if err != nil {
		return err
	}
	layers := make(layers)
	for message, err := range response.JSONMessages(ctx) {
		if err != nil {
			return err
		}
		if message.Error != nil {
			return message.Error
		}
		layers.note(message)
		if progress != nil {
			progress(layers.sum(image.given, message.Status))
		}
	}
	return ctx.Err()
}

// layers is what is known of each layer of a pull, by the engine's short id.
type layers map[string]*layer

type layer struct {
	done, total int64
	here        bool
}

// The words of the engine for a layer's state. Those that are not listed say
// nothing about bytes.
const (
	statusPulling     = "Pulling fs layer"
	statusWaiting     = "Waiting"
	statusDownloading = "Downloading"
	statusDownloaded  = "Download complete"
	statusExtracting  = "Extracting"
	statusComplete    = "Pull complete"
	statusExists      = "Already exists"
)

func (l layers) note(message jsonstream.Message) {
	switch message.Status {
	case statusPulling, statusWaiting, statusDownloading, statusDownloaded, statusExtracting, statusComplete, statusExists:
	default:
		return // a line about the image, whose id is the tag
	}
	known := l[message.ID]
	if known == nil {
		known = &layer{}
		l[message.ID] = known
	}
	switch message.Status {
	case statusDownloading:
		if message.Progress != nil {
			known.done = message.Progress.Current
			known.total = max(known.total, message.Progress.Total)
		}
	case statusDownloaded, statusExtracting:
		known.done = known.total
	case statusComplete, statusExists:
		known.done, known.here = known.total, true
	}
}

func (l layers) sum(ref, status string) Progress {
	sum := Progress{Ref: ref, Status: status, Layers: len(l)}
	for _, known := range l {
		sum.Done += known.done
		sum.Total += known.total
		if known.here {
			sum.LayersDone++
		}
	}
	return sum
}
