package pull

import (
	"github.com/distribution/reference"
	"github.com/docker/cli/cli/config"
	"github.com/moby/moby/api/pkg/authconfig"
	"github.com/moby/moby/api/types/registry"
)

// credentials returns what the Docker configuration, or the helper that it
// names, has for the image's registry, encoded for the engine. It is read on
// every pull, so that a "docker login" counts at once.
func credentials(configDir string, image reference.Named) (string, error) {
	file, err := config.Load(configDir)
	if err != nil {
		return "", err
	}
	auth, err := file.GetAuthConfig(reference.Domain(image))
	if err != nil {
		return "", err
	}
	return authconfig.Encode(registry.AuthConfig{
		Username:      auth.Username,
		Password:      auth.Password,
		Auth:          auth.Auth,
		ServerAddress: auth.ServerAddress,
		IdentityToken: auth.IdentityToken,
		RegistryToken: auth.RegistryToken,
	})
}
