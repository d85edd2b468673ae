package servers

import (
	"context"
	"fmt"

	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/release2"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
)

// platform looks at the Platform API, if it is configured.
func (l *look) platform(ctx context.Context) []Result {
	const check = "address"
	url := l.Getenv(platform.EnvURL)
	if url == "" && l.Getenv(platform.EnvToken) == "" {
		return []Result{unset(check, platform.EnvURL+" is not set: jobs of integrations need it")}
	}
	config, err := platform.ConfigFromEnv(l.Getenv)
	if err != nil {
		return []Result{wrong(check, err.Error(), "correct the settings")}
	}
	api, err := platform.New(config)
	if err != nil {
		return []Result{wrong(check, err.Error(), "correct the settings")}
	}
	if _, err := api.Organizations.ListOrganizations(ctx, &platformv1.ListOrganizationsRequest{PageSize: 1}); err != nil {
		return []Result{wrong(check, fmt.Sprintf("%s: %s", url, platform.Explain(err)), "start it, or correct "+platform.EnvURL+" and "+platform.EnvToken)}
	}
	l.noteTime(ctx, "platform", url)
	return []Result{ok(check, "Platform API at "+url)}
}

// release2 looks at the metadata API of Release 2, if it is configured.
func (l *look) release2(ctx context.Context) []Result {
	const check = "address"
	url := l.Getenv(release2.EnvURL)
	if url == "" && l.Getenv(release2.EnvToken) == "" {
		return []Result{unset(check, release2.EnvURL+" is not set: reverse sync needs it")}
	}
	config, err := release2.ConfigFromEnv(l.Getenv)
	if err != nil {
		return []Result{wrong(check, err.Error(), "correct the settings")}
	}
	api, err := release2.New(config)
	if err != nil {
		return []Result{wrong(check, err.Error(), "correct the settings")}
	}
	for _, err := range api.List(ctx, "organizations") {
		if err != nil {
			return []Result{wrong(check, err.Error(), "start it, or correct "+release2.EnvURL+" and "+release2.EnvToken)}
		}
		break
	}
	l.noteTime(ctx, "release2", url)
	return []Result{ok(check, "metadata API at "+url)}
}
