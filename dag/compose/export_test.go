package compose

// Helpers of the external tests, which use backends that import the package.
var (
	RandomJobs = randomJobs
	MustMerge  = mustMerge
)
