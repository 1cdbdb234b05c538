// Package dataset reads and writes the files that describe a published set of traces: the catalogue, the manifest of
// digests, and the metadata in the forms of Croissant, Hugging Face, Frictionless and Kaggle. It touches no file
// system.
package dataset
