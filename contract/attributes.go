package contract

import (
	"fmt"

	"go.temporal.io/sdk/temporal"

	"github.com/dendrascience/dendra-jobs/job"
)

// Search attributes, all of type Keyword.
var (
	AttributeJobID          = temporal.NewSearchAttributeKeyKeyword("JobId")
	AttributeJobType        = temporal.NewSearchAttributeKeyKeyword("JobType")
	AttributeJobMode        = temporal.NewSearchAttributeKeyKeyword("JobMode")
	AttributeQueue          = temporal.NewSearchAttributeKeyKeyword("JobQueue")
	AttributeProvider       = temporal.NewSearchAttributeKeyKeyword("JobProvider")
	AttributeOwner          = temporal.NewSearchAttributeKeyKeyword("JobOwner")
	AttributeDefinitionHash = temporal.NewSearchAttributeKeyKeyword("JobDefinitionHash")
	// AttributePauseEnd is when the pause of a Schedule ends by itself, in RFC 3339.
	AttributePauseEnd = temporal.NewSearchAttributeKeyKeyword("JobPauseEnd")
)

// AttributeKeys are all search attributes.
func AttributeKeys() []temporal.SearchAttributeKeyKeyword {
	return []temporal.SearchAttributeKeyKeyword{
		AttributeJobID, AttributeJobType, AttributeJobMode, AttributeQueue,
		AttributeProvider, AttributeOwner, AttributeDefinitionHash, AttributePauseEnd,
	}
}

// Attributes are the search attributes of everything that belongs to a job. The
// error is that of a spec that is not JSON.
func Attributes(j job.Job) (temporal.SearchAttributes, error) {
	hash, err := j.DefinitionHash()
	if err != nil {
		return temporal.SearchAttributes{}, err
	}
	updates := []temporal.SearchAttributeUpdate{
		AttributeJobID.ValueSet(j.ID),
		AttributeJobType.ValueSet(j.Type),
		AttributeJobMode.ValueSet(string(j.Mode())),
		AttributeProvider.ValueSet(string(j.Provider)),
		AttributeDefinitionHash.ValueSet(hash),
	}
	if queue := j.Queue(); queue != "" {
		updates = append(updates, AttributeQueue.ValueSet(queue))
	}
	if owner := j.Options.Owner.String(); owner != "" {
		updates = append(updates, AttributeOwner.ValueSet(owner))
	}
	return temporal.NewSearchAttributes(updates...), nil
}

// QueueAttributes are the search attributes of a queue and its pages.
func QueueAttributes(name string) temporal.SearchAttributes {
	return temporal.NewSearchAttributes(AttributeQueue.ValueSet(name))
}

// MaxSummaryBytes is the server's limit on a static summary.
const MaxSummaryBytes = 200

// Summary is the line that the Web UI shows for a run or loop of a job, in Markdown.
func Summary(j job.Job) string {
	summary := fmt.Sprintf("%s · %s", j.ID, j.Mode())
	if j.Options.Description != "" {
		summary += " · " + Plain(j.Options.Description)
	}
	return job.Cut(summary, MaxSummaryBytes)
}
