package sandbox

// An Image is a resolved image: what a reference stood for when it was
// resolved, and the part of its configuration that decides how it runs.
type Image struct {
	// Ref is the reference as the catalog has it.
	Ref string `json:"ref"`
	// Pin is what is started, whatever Ref stands for by now.
	Pin Pin `json:"pin"`
	// Config is the image's own configuration.
	Config ImageConfig `json:"-"`
}

// A PinKind says how an image is pinned.
type PinKind string

// The kinds of pin. A local id means something on one engine only, so it
// cannot be exported.
const (
	RepoDigest PinKind = "repo-digest"
	LocalID    PinKind = "local-id"
)

// A Pin is an immutable reference to an image.
type Pin struct {
	Kind PinKind `json:"kind"`
	// Digest is "sha256:…": the manifest's digest for [RepoDigest], the
	// image's id for [LocalID].
	Digest string `json:"digest"`
	// Platform is "os/arch[/variant]".
	Platform string `json:"platform"`
}

// ImageConfig is the part of an OCI image configuration that Compile reads.
type ImageConfig struct {
	Entrypoint []string `json:"entrypoint,omitempty"`
	Cmd        []string `json:"cmd,omitempty"`
	Env        []string `json:"env,omitempty"`
	User       string   `json:"user,omitempty"`
	WorkingDir string   `json:"working_dir,omitempty"`
	// Volumes are the declared volumes, sorted.
	Volumes []string `json:"volumes,omitempty"`
}
