// Creates, reads, updates and deletes resources as the azure-native plugin does: the same SDK in the same versions,
// generic JSON, and the same decisions (pulumi-azure-native, provider/pkg/azure/client_azcore.go, cloud/cloud.go and
// provider/auth_azidentity.go). Reads steps as JSON lines, and writes one line for each.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	armruntime "github.com/Azure/azure-sdk-for-go/sdk/azcore/arm/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
)

type step struct {
	Method  string         `json:"method"`
	ID      string         `json:"id"`
	Version string         `json:"version"`
	Body    map[string]any `json:"body"`
}

type result struct {
	Status int            `json:"status"`
	Code   string         `json:"code"`
	Body   map[string]any `json:"body"`
	Error  string         `json:"error"`
}

func main() {
	ctx := context.Background()
	client, err := connect(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	steps, out := json.NewDecoder(bufio.NewReader(os.Stdin)), json.NewEncoder(os.Stdout)
	for {
		var next step
		if steps.Decode(&next) != nil {
			return
		}
		_ = out.Encode(client.do(ctx, next))
	}
}

type client struct {
	host     string
	pipeline runtime.Pipeline
}

// connect finds the cloud by its metadata, and signs in with the environment's credentials.
func connect(ctx context.Context) (*client, error) {
	found, err := metadata(ctx, os.Getenv("ARM_METADATA_HOSTNAME"))
	if err != nil {
		return nil, err
	}
	where := cloud.Configuration{
		ActiveDirectoryAuthorityHost: found.Authentication.LoginEndpoint,
		Services: map[cloud.ServiceName]cloud.ServiceConfiguration{
			cloud.ResourceManager: {Audience: found.Authentication.Audiences[0], Endpoint: found.ResourceManager},
		},
	}
	credential, err := signIn(policy.ClientOptions{Cloud: where})
	if err != nil {
		return nil, err
	}
	options := &arm.ClientOptions{ClientOptions: policy.ClientOptions{Cloud: where}}
	options.Retry.MaxRetries = -1 // a failure is one at once
	pipeline, err := armruntime.NewPipeline("sdk-test", "v0.0.0", credential, runtime.PipelineOptions{}, options)
	return &client{found.ResourceManager, pipeline}, err
}

type endpoints struct {
	ResourceManager string `json:"resourceManager"`
	Authentication  struct {
		LoginEndpoint string   `json:"loginEndpoint"`
		Audiences     []string `json:"audiences"`
	} `json:"authentication"`
}

func metadata(ctx context.Context, host string) (found endpoints, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, host+"/metadata/endpoints?api-version=2022-09-01", nil)
	if err != nil {
		return
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return
	}
	defer response.Body.Close()
	err = json.NewDecoder(response.Body).Decode(&found)
	return
}

func signIn(options policy.ClientOptions) (azcore.TokenCredential, error) {
	if secret := os.Getenv("ARM_CLIENT_SECRET"); secret != "" {
		return azidentity.NewClientSecretCredential(
			os.Getenv("ARM_TENANT_ID"), os.Getenv("ARM_CLIENT_ID"), secret, &azidentity.ClientSecretCredentialOptions{
				ClientOptions:            options,
				DisableInstanceDiscovery: os.Getenv("ARM_DISABLE_INSTANCE_DISCOVERY") == "true",
			})
	}
	if os.Getenv("ARM_USE_MSI") == "true" {
		return azidentity.NewManagedIdentityCredential(&azidentity.ManagedIdentityCredentialOptions{ClientOptions: options})
	}
	return nil, errors.New("the environment has no credentials: set ARM_CLIENT_SECRET or ARM_USE_MSI=true")
}

// do sends one request and, except for GET and POST, waits for the operation.
func (c *client) do(ctx context.Context, s step) result {
	request, err := runtime.NewRequest(ctx, s.Method, runtime.JoinPaths(c.host, s.ID))
	if err != nil {
		return failed(err)
	}
	request.Raw().URL.RawQuery = url.Values{"api-version": {s.Version}}.Encode()
	request.Raw().Header.Set("Accept", "application/json")
	if s.Body != nil {
		if err := runtime.MarshalAsJSON(request, s.Body); err != nil {
			return failed(err)
		}
	}
	response, err := c.pipeline.Do(request)
	if err != nil {
		return failed(err)
	}
	done := result{Status: response.StatusCode}
	if response.StatusCode >= http.StatusBadRequest {
		return failed(runtime.NewResponseError(response))
	}
	if s.Method == http.MethodGet || s.Method == http.MethodPost {
		if err := runtime.UnmarshalAsJSON(response, &done.Body); err != nil {
			return failed(err)
		}
		return done
	}
	poller, err := runtime.NewPoller[map[string]any](response, c.pipeline, nil)
	if err != nil {
		return failed(err)
	}
	// The plugin's interval for deletions. It is long, so that a missing Retry-After fails the test.
	done.Body, err = poller.PollUntilDone(ctx, &runtime.PollUntilDoneOptions{Frequency: 30 * time.Second})
	if err != nil {
		return failed(err)
	}
	return done
}

func failed(err error) result {
	var refused *azcore.ResponseError
	if errors.As(err, &refused) {
		return result{Status: refused.StatusCode, Code: refused.ErrorCode, Error: err.Error()}
	}
	return result{Error: err.Error()}
}
