// Package compose makes one trace of several: [Merge] puts the ranks of each job behind those of the jobs before and
// moves it to when it starts, [Place] says on which nodes the ranks run. [Replicate] makes a trace of one rank of it.
package compose
