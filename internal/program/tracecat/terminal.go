// This file prints lists on a terminal: aligned, in colour and through a pager.

package tracecat

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/internal/cli"
)

// defaultPager quits if the list fits the screen (F), shows colours (R) and keeps the list on the screen (X).
const defaultPager = "less -FRX"

// terminal is the flags of output on a terminal.
type terminal struct {
	color   colorMode
	noPager bool
}

func (t *terminal) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Var(&t.color, "color", "colour of --ops: auto (on a terminal), always or never")
	cli.CompleteWith(cmd, "color", colorModes)
	flags.BoolVar(&t.noPager, "no-pager", false, "do not page --ops on a terminal")
}

// colorMode is a flag that selects when a list has colours.
type colorMode string

var colorModes = []string{"auto", "always", "never"}

// Set sets the mode.
func (m *colorMode) Set(text string) error {
	for _, mode := range colorModes {
		if text == mode {
			*m = colorMode(mode)
			return nil
		}
	}
	return fmt.Errorf("expected auto, always or never, found %.40q", text)
}

// String returns the mode.
func (m *colorMode) String() string { return string(*m) }

// Type returns the placeholder in help.
func (m *colorMode) Type() string { return "when" }

// colored reports whether a list has colours. https://no-color.org describes NO_COLOR.
func (m colorMode) colored(isTerminal bool) bool {
	switch m {
	case "always":
		return true
	case "never":
		return false
	}
	return isTerminal && os.Getenv("NO_COLOR") == "" && !dumb()
}

// dumb reports whether the terminal can neither move the cursor nor show colours.
func dumb() bool { return os.Getenv("TERM") == "dumb" }

// screen is standard output for a list.
type screen struct {
	io.Writer
	out   *cli.Output
	pager *pager
}

// open opens standard output for a list; table states that the list has columns.
func (t *terminal) open(p *cli.Program, table bool) (*screen, error) {
	out, err := p.Create("-", false)
	if err != nil {
		return nil, err
	}
	s := &screen{Writer: out, out: out}
	isTerminal := cli.IsTerminal(p.Stdout)
	if isTerminal && !t.noPager && !dumb() {
		if s.pager = startPager(p.Stdout, p.Stderr); s.pager != nil {
			s.Writer = s.pager.in
		}
	}
	if colored := t.color.colored(isTerminal); table && (isTerminal || colored) {
		s.Writer = &painter{out: s.Writer, aligned: isTerminal, colored: colored}
	}
	return s, nil
}

// close ends the list. err is the error of writing it.
func (s *screen) close(err error) error {
	defer s.out.Close()
	if s.pager != nil {
		return s.pager.close(err)
	}
	if err != nil {
		return err
	}
	return s.out.Commit()
}

// pager is a program that shows a text page by page.
type pager struct {
	cmd *exec.Cmd
	in  io.WriteCloser
}

// startPager starts the pager that the environment names; nil if it names none or the program is missing.
func startPager(stdout, stderr io.Writer) *pager {
	command, ok := os.LookupEnv("PAGER")
	if !ok {
		command = defaultPager
	}
	words := strings.Fields(command)
	if len(words) == 0 {
		return nil
	}
	if runtime.GOOS != "windows" { // as git and man do: the value may have quotes
		words = []string{"/bin/sh", "-c", command}
		if _, err := exec.LookPath(strings.Fields(command)[0]); err != nil {
			return nil
		}
	}
	pg := &pager{cmd: exec.Command(words[0], words[1:]...)}
	pg.cmd.Stdout, pg.cmd.Stderr = stdout, stderr
	var err error
	if pg.in, err = pg.cmd.StdinPipe(); err != nil || pg.cmd.Start() != nil {
		return nil
	}
	signal.Ignore(os.Interrupt) // Ctrl-C is for the pager, which would lose its terminal
	return pg
}

// close waits for the pager to end. A pager that ends before the list is no error.
func (pg *pager) close(err error) error {
	defer signal.Reset(os.Interrupt)
	closed := pg.in.Close()
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) {
		err = nil
	}
	ended := pg.cmd.Wait()
	var status *exec.ExitError
	if errors.As(ended, &status) || closed != nil {
		ended = nil // the pager reports its errors itself
	}
	return errors.Join(err, ended)
}

// Colours of kinds of op, as SGR parameters.
var kindColors = map[string]string{"calc": "32", "send": "34", "recv": "36", "coll": "35", "mem": "33", "io": "31"}

const (
	headingColor = "1" // bold
	absentColor  = "2" // faint
	kindColumn   = 2   // column of the kind in a list of ops
)

// mostAligned is the width of the widest column that is aligned.
const mostAligned = 32

// painter aligns and colours the columns of complete lines with tabs. The first line has headings. A column is as wide
// as its widest value so far.
type painter struct {
	out              io.Writer
	aligned, colored bool
	widths           []int
	begun            bool
	text             []byte
}

// Write writes complete lines.
func (p *painter) Write(lines []byte) (int, error) {
	if p.aligned {
		p.measure(lines)
	}
	p.text = p.text[:0]
	for line := range bytes.Lines(lines) {
		p.line(bytes.TrimSuffix(line, []byte("\n")))
	}
	if _, err := p.out.Write(p.text); err != nil {
		return 0, err
	}
	return len(lines), nil
}

// measure widens the columns.
func (p *painter) measure(lines []byte) {
	for line := range bytes.Lines(lines) {
		column := 0
		for cell := range bytes.SplitSeq(bytes.TrimSuffix(line, []byte("\n")), []byte("\t")) {
			if column == len(p.widths) {
				p.widths = append(p.widths, 0)
			}
			if width := utf8.RuneCount(cell); width <= mostAligned {
				p.widths[column] = max(p.widths[column], width)
			}
			column++
		}
	}
}

func (p *painter) line(line []byte) {
	rest, more := line, true
	for column := 0; more; column++ {
		var cell []byte
		cell, rest, more = bytes.Cut(rest, []byte("\t"))
		color := ""
		switch {
		case !p.colored:
		case !p.begun:
			color = headingColor
		case column == kindColumn:
			color = kindColors[string(cell)]
		case string(cell) == "-":
			color = absentColor
		}
		if color != "" {
			p.text = append(append(append(p.text, "\x1b["...), color...), 'm')
		}
		p.text = append(p.text, cell...)
		if color != "" {
			p.text = append(p.text, "\x1b[0m"...)
		}
		switch {
		case !more:
		case p.aligned:
			for n := utf8.RuneCount(cell); n < p.widths[column]+2; n++ {
				p.text = append(p.text, ' ')
			}
			if utf8.RuneCount(cell) >= p.widths[column]+2 {
				p.text = append(p.text, "  "...)
			}
		default:
			p.text = append(p.text, '\t')
		}
	}
	p.text = append(p.text, '\n')
	p.begun = true
}
