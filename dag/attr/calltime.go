package attr

// callTime is the member "mpi" of the attributes of a calc.
type callTime struct {
	Picoseconds int64 `json:"calls_ps"`
}

// CallTime returns the attributes of a calc that contains the given time in calls of MPI, in picoseconds: in calls that
// involve no other rank, or whose effect on others the trace does not show.
func CallTime(picoseconds int64) string {
	return Encode("mpi", callTime{picoseconds})
}

// ParseCallTime returns the time of [CallTime], 0 if the attributes have none.
func ParseCallTime(attrs string) (picoseconds int64) {
	var c callTime
	if !Decode(attrs, "mpi", &c) {
		return 0
	}
	return max(c.Picoseconds, 0)
}
