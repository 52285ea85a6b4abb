package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"sync/atomic"

	"cloud.google.com/go/storage"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"gocloud.dev/blob"
	"gocloud.dev/blob/azureblob"
	"gocloud.dev/blob/fileblob"
	"gocloud.dev/blob/gcsblob"
	"gocloud.dev/blob/s3blob"
	"gocloud.dev/gcp"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"google.golang.org/api/option"
)

func (c Config) directory(context.Context, map[string]string) (*blob.Bucket, error) {
	if _, err := os.Stat(c.Bucket); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the volume has no such directory, is the claim the right one? %w", err)
	}
	// Temporary files beside the others, since these are on a volume, and no files with
	// attributes, which no one reads.
	return fileblob.OpenBucket(c.Bucket, &fileblob.Options{NoTempDir: true, Metadata: fileblob.MetadataDontWrite, DirFileMode: 0o750})
}

func (c Config) s3(ctx context.Context, secrets map[string]string) (*blob.Bucket, error) {
	configure, err := c.transport()
	if err != nil {
		return nil, err
	}
	options := []func(*awsconfig.LoadOptions) error{awsconfig.WithHTTPClient(awshttp.NewBuildableClient().WithTransportOptions(configure)), awsconfig.WithRetryMaxAttempts(c.tries())}
	if c.Region != "" {
		options = append(options, awsconfig.WithRegion(c.Region))
	} else if c.Endpoint != "" {
		options = append(options, awsconfig.WithDefaultRegion("us-east-1")) // what such stores expect
	}
	if len(secrets) > 0 {
		options = append(options, awsconfig.WithCredentialsProvider(credentials.NewStaticCredentialsProvider(secrets[accessKeyID], secrets[secretAccessKey], secrets[sessionToken])))
	}
	config, err := awsconfig.LoadDefaultConfig(ctx, options...)
	if err != nil {
		return nil, err
	}
	if config.Region == "" {
		return nil, errors.New("no region is given for the bucket")
	}
	bucket := &s3blob.Options{}
	if c.Endpoint != "" {
		// Stores with S3's API refuse the checksums that came to it last.
		bucket.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
	}
	return s3blob.OpenBucket(ctx, s3.NewFromConfig(config, func(o *s3.Options) {
		o.Retryer = c.retryer() // of the store alone: those who give credentials have others
		if c.Endpoint != "" {
			o.BaseEndpoint, o.UsePathStyle = aws.String(c.Endpoint), true
			o.RequestChecksumCalculation, o.ResponseChecksumValidation = aws.RequestChecksumCalculationWhenRequired, aws.ResponseChecksumValidationWhenRequired
			o.APIOptions = append(o.APIOptions, sumUploads)
		}
	}), c.Bucket, bucket)
}

// sumUploads adds Content-MD5 to what is uploaded, the checksum that all stores with S3's API know:
// a bucket with Object Lock refuses what has none.
func sumUploads(stack *middleware.Stack) error {
	if operation := stack.ID(); operation != "PutObject" && operation != "UploadPart" {
		return nil
	}
	return smithyhttp.AddContentChecksumMiddleware(stack)
}

// retryer is the SDK's, which also asks again where an answer that refuses a request was cut:
// a store that refuses a write before it has read it may close the connection, and what the
// answer says of the reason is lost on the way.
func (c Config) retryer() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts = c.tries()
		o.Retryables = append(o.Retryables, retry.IsErrorRetryableFunc(func(err error) aws.Ternary {
			if _, status := answer(err); status >= http.StatusMultipleChoices && ofConnection(err) == adviceCut {
				return aws.TrueTernary
			}
			return aws.UnknownTernary
		}))
	})
}

func (c Config) gcs(ctx context.Context, secrets map[string]string) (*blob.Bucket, error) {
	client, err := c.http()
	if err != nil {
		return nil, err
	}
	// Tokens are Google's, whoever has signed the certificate of the endpoint.
	tokens, err := Config{}.http()
	if err != nil {
		return nil, err
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, tokens)
	const scope = "https://www.googleapis.com/auth/devstorage.read_write"
	var signed *google.Credentials
	if key := secrets[serviceAccountJSON]; key != "" {
		// No other type of key: one may name a program to run, or a URL to ask.
		signed, err = google.CredentialsFromJSONWithType(ctx, []byte(key), google.ServiceAccount, scope)
	} else {
		signed, err = google.FindDefaultCredentials(ctx, scope)
	}
	if err != nil {
		return nil, err
	}
	authorized, err := gcp.NewHTTPClient(client.Transport, gcp.CredentialsTokenSource(signed))
	if err != nil {
		return nil, err
	}
	options := []option.ClientOption{option.WithHTTPClient(&authorized.Client)}
	if c.Endpoint != "" {
		options = append(options, option.WithEndpoint(strings.TrimRight(c.Endpoint, "/")+"/storage/v1/"))
	}
	api, err := storage.NewClient(ctx, options...)
	if err != nil {
		return nil, err
	}
	// Whatever is written twice is the same, or is written on the condition that it is not there.
	api.SetRetry(storage.WithMaxAttempts(c.tries()), storage.WithPolicy(storage.RetryAlways))
	return gcsblob.OpenBucket(ctx, nil, c.Bucket, &gcsblob.Options{Client: api})
}

// beforeWrite limits how often an upload to Google Cloud Storage is tried again, which its
// SDK does for as long as it is let, whatever number of attempts it was given.
func (c Config) beforeWrite(as func(any) bool) error {
	var object **storage.ObjectHandle
	if c.Kind != GCS || !as(&object) {
		return nil
	}
	var failed atomic.Int32
	*object = (*object).Retryer(storage.WithErrorFunc(func(err error) bool {
		return storage.ShouldRetry(err) && int(failed.Add(1)) < c.tries()
	}))
	return nil
}

func (c Config) azure(ctx context.Context, secrets map[string]string) (*blob.Bucket, error) {
	client, err := c.http()
	if err != nil {
		return nil, err
	}
	var options container.ClientOptions
	options.Transport, options.Retry.MaxRetries = client, int32(c.tries()-1) //nolint:gosec // small
	address := strings.TrimRight(cmp.Or(c.Endpoint, "https://"+c.Account+".blob.core.windows.net"), "/") + "/" + c.Bucket
	var api *container.Client
	if key := secrets[accountKey]; key != "" {
		shared, err := container.NewSharedKeyCredential(c.Account, key)
		if err != nil {
			return nil, fmt.Errorf("the Secret has no valid %s", accountKey) // the error may have a part of it
		}
		api, err = container.NewClientWithSharedKeyCredential(address, shared, &options)
		if err != nil {
			return nil, err
		}
	} else {
		// Tokens are Azure's, whoever has signed the certificate of the endpoint.
		tokens, err := Config{}.http()
		if err != nil {
			return nil, err
		}
		identity, err := azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{ClientOptions: azcore.ClientOptions{Retry: options.Retry, Transport: tokens}})
		if err != nil {
			return nil, err
		}
		api, err = container.NewClient(address, identity, &options)
		if err != nil {
			return nil, err
		}
	}
	return azureblob.OpenBucket(ctx, api, nil)
}

func (c Config) tries() int { return cmp.Or(c.attempts, 4) }
