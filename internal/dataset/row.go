package dataset

// Row describes a trace of a set: a row of catalogue.parquet. Times are in picoseconds and sizes in bytes. A nil
// pointer is NULL: the value is absent, or a sum of at least 2^63.
type Row struct {
	Trace         string
	Path          string // of the store, relative to the set, with slashes
	SHA256        string // of the store, in hexadecimal
	ContentSHA256 string // of the trace, whatever its encoding, in hexadecimal; see formats/store.ContentSHA256
	Bytes         int64  // of the store
	StoreVersion  string
	Title         string
	Workload      string
	SourceFormat  string

	Ranks, Nodes, Jobs, Communicators           int64
	Ops, Calcs, Sends, Recvs, Colls, Mems, IOs  int64
	Messages                                    int64
	BytesSent, BytesCollective, BytesMem        *int64
	BytesIO, CalcPS, Flops                      *int64
	LastReleasePS, CriticalPathPS, Dependencies int64
	Measured                                    bool

	Program, ProgramVersion string
	Command                 string // of the first provenance step, quoted for a POSIX shell
	Seed                    *int64

	License, Creator string
	Source, Citation *string
	AddedVersion     string // of the set
	Tags             []string
}

// Column describes a column of a table of the set. Type is one of int32, int64, string and bool.
type Column struct {
	Name        string
	Type        string
	Description string
	List        bool // the values are lists
}

// field is a column of the catalogue.
type field struct {
	name        string
	description string
	of          func(r *Row) any // pointer to the value: *string, *int64, *bool, **string, **int64 or *[]string
}

// fields are the columns of the catalogue, in the order of the file.
var fields = []field{
	{"trace", "name of the trace, unique in the set", func(r *Row) any { return &r.Trace }},
	{"path", "path of the store in the set", func(r *Row) any { return &r.Path }},
	{"sha256", "SHA-256 of the store", func(r *Row) any { return &r.SHA256 }},
	{"content_sha256", "SHA-256 of the ops, independent of their encoding",
		func(r *Row) any { return &r.ContentSHA256 }},
	{"bytes", "size of the store in bytes", func(r *Row) any { return &r.Bytes }},
	{"store_version", "schema version of the store", func(r *Row) any { return &r.StoreVersion }},
	{"title", "title of the trace", func(r *Row) any { return &r.Title }},
	{"workload", "workload model, application or source format", func(r *Row) any { return &r.Workload }},
	{"source_format", "format of the file that the trace was read from", func(r *Row) any { return &r.SourceFormat }},
	{"ranks", "number of ranks", func(r *Row) any { return &r.Ranks }},
	{"nodes", "number of distinct nodes of the ranks", func(r *Row) any { return &r.Nodes }},
	{"jobs", "number of jobs", func(r *Row) any { return &r.Jobs }},
	{"communicators", "number of communicators", func(r *Row) any { return &r.Communicators }},
	{"ops", "number of ops", func(r *Row) any { return &r.Ops }},
	{"calcs", "number of computations", func(r *Row) any { return &r.Calcs }},
	{"sends", "number of sends", func(r *Row) any { return &r.Sends }},
	{"recvs", "number of receives", func(r *Row) any { return &r.Recvs }},
	{"colls", "number of collective ops", func(r *Row) any { return &r.Colls }},
	{"mems", "number of memory accesses", func(r *Row) any { return &r.Mems }},
	{"ios", "number of storage accesses", func(r *Row) any { return &r.IOs }},
	{"messages", "number of messages", func(r *Row) any { return &r.Messages }},
	{"bytes_sent", "bytes of all sends", func(r *Row) any { return &r.BytesSent }},
	{"bytes_collective", "bytes that all ranks contribute to collectives",
		func(r *Row) any { return &r.BytesCollective }},
	{"bytes_mem", "bytes of all memory accesses", func(r *Row) any { return &r.BytesMem }},
	{"bytes_io", "bytes of all storage accesses", func(r *Row) any { return &r.BytesIO }},
	{"calc_ps", "sum of compute time over all ranks, in picoseconds", func(r *Row) any { return &r.CalcPS }},
	{"flops", "floating-point operations of all computations", func(r *Row) any { return &r.Flops }},
	{"last_release_ps", "latest release time, in picoseconds", func(r *Row) any { return &r.LastReleasePS }},
	{"critical_path_ps", "longest chain of dependent computations of one rank, in picoseconds",
		func(r *Row) any { return &r.CriticalPathPS }},
	{"deps", "number of dependencies", func(r *Row) any { return &r.Dependencies }},
	{"measured", "whether ops have recorded start and end times", func(r *Row) any { return &r.Measured }},
	{"program", "program of the first provenance step", func(r *Row) any { return &r.Program }},
	{"program_version", "version of that program", func(r *Row) any { return &r.ProgramVersion }},
	{"command", "command of the first provenance step, quoted for a shell", func(r *Row) any { return &r.Command }},
	{"seed", "seed of the first provenance step, NULL without random choices", func(r *Row) any { return &r.Seed }},
	{"license", "SPDX identifier of the licence", func(r *Row) any { return &r.License }},
	{"creator", "creators of the trace", func(r *Row) any { return &r.Creator }},
	{"source", "origin of the trace, NULL if unknown", func(r *Row) any { return &r.Source }},
	{"citation", "citation of the trace, NULL if unknown", func(r *Row) any { return &r.Citation }},
	{"added_version", "version of the set that added the trace", func(r *Row) any { return &r.AddedVersion }},
	{"tags", "tags of the trace, KEY=VALUE, sorted", func(r *Row) any { return &r.Tags }},
}

// CatalogueColumns returns the columns of the catalogue in the order of the file.
func CatalogueColumns() []Column {
	columns := make([]Column, len(fields))
	for i, f := range fields {
		columns[i] = Column{Name: f.name, Description: f.description}
		switch f.of(new(Row)).(type) {
		case *int64, **int64:
			columns[i].Type = "int64"
		case *bool:
			columns[i].Type = "bool"
		case *[]string:
			columns[i].Type, columns[i].List = "string", true
		default:
			columns[i].Type = "string"
		}
	}
	return columns
}

// Value is a value of a row by column name, for output: a string, int64, bool, []string, or nil for NULL.
type Value struct {
	Name  string
	Value any
}

// Values returns the values of the row, in the order of the columns.
func (r *Row) Values() []Value {
	values := make([]Value, len(fields))
	for i, f := range fields {
		values[i].Name = f.name
		switch v := f.of(r).(type) {
		case *string:
			values[i].Value = *v
		case *int64:
			values[i].Value = *v
		case *bool:
			values[i].Value = *v
		case *[]string:
			values[i].Value = append([]string{}, *v...)
		case **string:
			if *v != nil {
				values[i].Value = **v
			}
		case **int64:
			if *v != nil {
				values[i].Value = **v
			}
		}
	}
	return values
}
