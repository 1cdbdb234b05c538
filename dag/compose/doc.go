// Package compose makes one trace of several, and changes whole traces. docs/compose.md describes both for users.
//
// [Merge] puts the ranks of each job behind those of the jobs before and moves it to when it starts; [Place] says on
// which nodes single ranks run, [Layout] on which whole jobs do, and [OnNodes] merges them so that ranks are nodes.
// [SeparateNICs] prepares jobs for sharing a node.
//
// Of a single trace, [Window] and [KeepRanks] leave a part, [Repeat] makes several iterations, [Scale] changes how long
// calcs take, [Only] leaves one job, and [Replicate] has many ranks do what one does.
package compose
