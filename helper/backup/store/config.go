package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"gocloud.dev/blob"
)

// Kind is a kind of store.
type Kind string

// The kinds of stores.
const (
	// S3 is Amazon S3, or a store with its API.
	S3 Kind = "s3"
	// GCS is Google Cloud Storage.
	GCS Kind = "gcs"
	// Azure is Azure Blob Storage.
	Azure Kind = "azure"
	// Directory is a directory of a mounted volume.
	Directory Kind = "directory"
)

// Config says which store is meant and how to sign in.
type Config struct {
	Kind Kind
	// Bucket is the name of the bucket, of Azure's container, or the path of the directory.
	Bucket string
	// Endpoint is the URL of a store other than the cloud's own; empty means the latter.
	Endpoint string
	// Region is that of an S3 bucket. It is taken from the environment when it is empty.
	Region string
	// Account is Azure's storage account.
	Account string
	// CAFile has the certificates, in PEM, of the only CAs that the endpoint is trusted by;
	// empty means those of the system.
	CAFile string
	// Credentials is the directory of a mounted Secret, see credentials; when it is empty,
	// the platform's workload identity is used.
	Credentials string

	// attempts is how often a request is made that fails for a reason that may pass; zero
	// means four times.
	attempts int
	// patience is how long a connection may stand still, and how long an answer may take to
	// begin; zero means as long as stalled and answering say.
	patience time.Duration
}

// Open opens a store. It does not reach for it: the first request does.
func Open(ctx context.Context, c Config) (*Store, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	secrets, err := c.secrets()
	if err != nil {
		return nil, err
	}
	open := map[Kind]func(context.Context, map[string]string) (*blob.Bucket, error){S3: c.s3, GCS: c.gcs, Azure: c.azure, Directory: c.directory}[c.Kind]
	s := &Store{config: c, location: string(c.Kind) + "://" + c.Bucket}
	if c.Kind == Directory {
		s.location = c.Bucket
	}
	s.secrets = hidden(secrets)
	if s.bucket, err = open(ctx, secrets); err != nil {
		return nil, s.explain("open it", err)
	}
	return s, nil
}

func (c Config) check() error {
	switch c.Kind {
	case S3, GCS, Azure, Directory:
	default:
		return fmt.Errorf("%q is not a kind of store: choose s3, gcs, azure or directory", c.Kind)
	}
	if c.Bucket == "" {
		return errors.New("no bucket, container or directory is given")
	}
	if c.Kind == Azure && c.Account == "" {
		return errors.New("no storage account is given, of which the container is")
	}
	if c.Endpoint == "" {
		return nil
	}
	endpoint, err := url.Parse(c.Endpoint)
	if err != nil || endpoint.Scheme != "https" || endpoint.Host == "" || endpoint.User != nil || endpoint.RawQuery != "" || endpoint.Fragment != "" {
		return errors.New("the endpoint of the store is not a URL such as https://s3.example.com:9000, without user, query and fragment") // it may have a password in it
	}
	return nil
}

// The keys of a Secret with credentials, by kind of store.
const (
	accessKeyID        = "accessKeyID"
	secretAccessKey    = "secretAccessKey"
	sessionToken       = "sessionToken" // optional
	serviceAccountJSON = "serviceAccount.json"
	accountKey         = "accountKey"
)

var credentialKeys = map[Kind][]string{S3: {accessKeyID, secretAccessKey}, GCS: {serviceAccountJSON}, Azure: {accountKey}}

// secrets reads the credentials; there are none without a directory of them.
func (c Config) secrets() (map[string]string, error) {
	if c.Credentials == "" || c.Kind == Directory {
		return nil, nil
	}
	out := map[string]string{}
	var missing []string
	for _, key := range credentialKeys[c.Kind] {
		content, err := os.ReadFile(filepath.Join(c.Credentials, key))
		if out[key] = strings.TrimSpace(string(content)); err != nil || out[key] == "" {
			missing = append(missing, key)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("the Secret with the credentials for the store has no %s: a store of kind %s needs the keys %s", strings.Join(missing, ", "), c.Kind, strings.Join(credentialKeys[c.Kind], ", "))
	}
	if content, err := os.ReadFile(filepath.Join(c.Credentials, sessionToken)); err == nil && c.Kind == S3 {
		out[sessionToken] = strings.TrimSpace(string(content))
	}
	return out, nil
}

// hidden returns the parts of credentials that no message may have: all but the name of a
// key, by which a person finds it.
func hidden(secrets map[string]string) []string {
	var out []string
	for key, secret := range secrets {
		if key == accessKeyID || secret == "" {
			continue
		}
		out = append(out, secret)
		var account struct {
			PrivateKey string `json:"private_key"`
		}
		if key == serviceAccountJSON && json.Unmarshal([]byte(secret), &account) == nil {
			for line := range strings.Lines(account.PrivateKey) {
				if line = strings.TrimSpace(line); len(line) > 16 && !strings.HasPrefix(line, "-----") {
					out = append(out, line)
				}
			}
		}
	}
	return out
}
