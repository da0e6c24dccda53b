// Package pull finds the image that a reference stands for, and lets an engine
// pull what it does not have.
//
// It decides how an image is pinned: by the digest that its registry has given
// it or, if it never was in that repository, by the engine's own id. It refuses
// references that are none, and images that are not pinned. What an engine has
// is not asked for again, and a pull brings what was asked for or an [*Error]
// with the reason. Credentials are those of the Docker configuration, read on
// each pull, and given to the engine alone.
package pull

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/distribution/reference"
	imagetypes "github.com/moby/moby/api/types/image"
	"github.com/moby/moby/client"
	"github.com/moby/moby/client/pkg/versions"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/dockgate/dockgate/internal/docker/reach"
	"github.com/dockgate/dockgate/internal/sandbox"
)

// Images are those of an engine. All methods may be called from any goroutine.
type Images struct {
	conn      *reach.Conn
	configDir string
	log       *slog.Logger
}

// New returns the images of an engine, with the folder of the Docker
// configuration that has the credentials of registries.
func New(conn *reach.Conn, configDir string, log *slog.Logger) *Images {
	return &Images{conn: conn, configDir: configDir, log: log}
}

// A Resolved is an image that the engine has, and how it came there.
type Resolved struct {
	sandbox.Image
	// Pulled reports that the registry was asked, and answered.
	Pulled bool
	// Offline is why the registry could not be asked, if the engine's own copy
	// stands in for it; else nil.
	Offline error
}

// Resolve returns the image that the reference stands for, as the engine has
// it; it pulls only what the engine does not have. A reference is a name with
// a tag or a digest or both, or the id of an image of this engine. Progress
// may be nil; it is called in order from one goroutine, before Resolve returns.
//
// The errors are [*Error] and [*reach.EngineError].
func (i *Images) Resolve(ctx context.Context, ref string, progress func(Progress)) (Resolved, error) {
	image, err := parseImage(ref)
	if err != nil {
		return Resolved{}, err
	}
	found, err := i.inspect(ctx, image)
	if err == nil {
		return Resolved{Image: found}, nil
	}
	if !cerrdefs.IsNotFound(err) || image.named == nil {
		return Resolved{}, Failed(i.conn.Engine, ref, err)
	}
	return i.pulled(ctx, image, progress)
}

// Latest pulls what the reference stands for now, whatever the engine has. If
// the registry is not reachable and the engine has an image of that name,
// that one is returned, with the reason in Offline. An image id stands for
// itself.
func (i *Images) Latest(ctx context.Context, ref string, progress func(Progress)) (Resolved, error) {
	image, err := parseImage(ref)
	if err != nil {
		return Resolved{}, err
	}
	if image.named == nil {
		return i.Resolve(ctx, ref, progress)
	}
	fresh, err := i.pulled(ctx, image, progress)
	if err == nil || !errors.Is(err, ErrUnreachable) {
		return fresh, err
	}
	found, missing := i.inspect(ctx, image)
	if missing != nil {
		return Resolved{}, err
	}
	return Resolved{Image: found, Offline: err}, nil
}

func (i *Images) pulled(ctx context.Context, image imageRef, progress func(Progress)) (Resolved, error) {
	if err := i.pull(ctx, image, progress); err != nil {
		return Resolved{}, Failed(i.conn.Engine, image.given, err)
	}
	found, err := i.inspect(ctx, image)
	if err != nil {
		return Resolved{}, Failed(i.conn.Engine, image.given, err)
	}
	return Resolved{Image: found, Pulled: true}, nil
}

// An imageRef is a parsed reference: a name, or the id of an image.
type imageRef struct {
	given string
	named reference.Named // nil for an id
	// engine is how the engine is asked for it.
	engine string
	digest digest.Digest
}

func parseImage(ref string) (imageRef, error) {
	parsed, err := reference.ParseAnyReference(ref)
	if err != nil {
		return imageRef{}, &Error{Ref: ref, Reason: ErrReference, Err: err}
	}
	named, ok := parsed.(reference.Named)
	if !ok {
		return imageRef{given: ref, engine: parsed.String(), digest: digest.Digest(parsed.String())}, nil
	}
	image := imageRef{given: ref, named: reference.TagNameOnly(named)}
	if digested, ok := named.(reference.Digested); ok {
		// With a digest the tag says nothing more, and engines differ in what
		// they make of both.
		image.digest = digested.Digest()
		canonical, err := reference.WithDigest(reference.TrimNamed(named), image.digest)
		if err != nil {
			return imageRef{}, &Error{Ref: ref, Reason: ErrReference, Err: err}
		}
		image.named = canonical
	}
	image.engine = image.named.String()
	return image, nil
}

func (i *Images) inspect(ctx context.Context, image imageRef) (sandbox.Image, error) {
	found, err := i.conn.API.ImageInspect(ctx, image.engine)
	if cerrdefs.IsNotFound(err) && image.digest != "" && image.named != nil {
		// An engine that keeps images by the digests of registries has those
		// whose tag has moved on without a name.
		found, err = i.conn.API.ImageInspect(ctx, image.digest.String())
	}
	if err != nil {
		return sandbox.Image{}, err
	}
	resolved := sandbox.Image{Ref: image.given, Pin: image.pin(found, i.tellsOrigin(found))}
	if config := found.Config; config != nil {
		resolved.Config = sandbox.ImageConfig{
			Entrypoint: config.Entrypoint,
			Cmd:        config.Cmd,
			Env:        config.Env,
			User:       config.User,
			WorkingDir: config.WorkingDir,
			Volumes:    slices.Sorted(maps.Keys(config.Volumes)),
		}
	}
	return resolved, nil
}

// originAPI is the first version of the API in which an engine says where an
// image came from.
const originAPI = "1.53"

// An origin is what an engine's answer says of where an image came from.
type origin int

const (
	// byName: the engine names the digests that registries have given it.
	byName origin = iota
	// byIdentity: the engine names a digest for every tag, also of an image
	// that was built there, and the repositories that it has pulled from.
	byIdentity
)

// tellsOrigin says how to read the answer. Engines that keep images as
// registries do, and are too old to say where they came from, are believed.
func (i *Images) tellsOrigin(found client.ImageInspectResult) origin {
	if found.Descriptor != nil && versions.GreaterThanOrEqualTo(i.conn.API.ClientVersion(), originAPI) {
		return byIdentity
	}
	return byName
}

// came reports whether the image has come from the registry's repository, or
// gone there.
func (image imageRef) came(found client.ImageInspectResult, by origin) bool {
	if by == byName {
		return true
	}
	if found.Identity == nil {
		return false
	}
	names := []string{image.named.Name()}
	// Engines note the repository without the registry's port, and read that
	// like a name that was typed.
	host, _, _ := strings.Cut(reference.Domain(image.named), ":")
	if plain, err := reference.ParseNormalizedNamed(host + "/" + reference.Path(image.named)); err == nil {
		names = append(names, plain.Name())
	}
	return slices.ContainsFunc(found.Identity.Pull, func(from imagetypes.PullIdentity) bool {
		return slices.Contains(names, from.Repository)
	})
}

// pin picks the digest under which the registry has the image; an image that
// never was in that repository is pinned by its id on this engine.
func (image imageRef) pin(found client.ImageInspectResult, by origin) sandbox.Pin {
	pin := sandbox.Pin{
		Kind:     sandbox.LocalID,
		Digest:   found.ID,
		Platform: path.Join(found.Os, found.Architecture, found.Variant),
	}
	switch {
	case image.named == nil:
		return pin
	case image.digest != "":
		pin.Kind, pin.Digest = sandbox.RepoDigest, image.digest.String()
		return pin
	case !image.came(found, by):
		return pin
	}
	var digests []string
	for _, repoDigest := range found.RepoDigests {
		known, err := reference.ParseNormalizedNamed(repoDigest)
		if err != nil {
			continue
		}
		digested, ok := known.(reference.Digested)
		if !ok || known.Name() != image.named.Name() {
			continue
		}
		digests = append(digests, digested.Digest().String())
	}
	if len(digests) > 0 {
		// Several digests of one image have the same content.
		slices.Sort(digests)
		pin.Kind, pin.Digest = sandbox.RepoDigest, digests[0]
	}
	return pin
}

// Exactly returns how the engine is asked for the image of the pin, and for
// nothing else. An engine that keeps images by the digests of registries may
// know it by the digest alone: by what follows the "@".
func Exactly(image sandbox.Image) (string, error) {
	parsed, err := digest.Parse(image.Pin.Digest)
	if err != nil {
		return "", &Error{Ref: image.Ref, Reason: ErrReference, Err: fmt.Errorf("pin %q: %w", image.Pin.Digest, err)}
	}
	switch image.Pin.Kind {
	case sandbox.LocalID:
		return parsed.String(), nil
	case sandbox.RepoDigest:
		named, err := reference.ParseNormalizedNamed(image.Ref)
		if err != nil {
			return "", &Error{Ref: image.Ref, Reason: ErrReference, Err: err}
		}
		canonical, err := reference.WithDigest(reference.TrimNamed(named), parsed)
		if err != nil {
			return "", &Error{Ref: image.Ref, Reason: ErrReference, Err: err}
		}
		return canonical.String(), nil
	default:
		return "", &Error{Ref: image.Ref, Reason: ErrReference, Err: fmt.Errorf("image is not pinned (kind %q)", image.Pin.Kind)}
	}
}

// Platform reads the platform of a pin, "os/arch[/variant]"; nil if it has none.
func Platform(name string) *ocispec.Platform {
	parts := strings.SplitN(name, "/", 3)
	if len(parts) < 2 {
		return nil
	}
	p := &ocispec.Platform{OS: parts[0], Architecture: parts[1]}
	if len(parts) == 3 {
		p.Variant = parts[2]
	}
	return p
}
