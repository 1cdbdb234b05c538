// This file writes the man pages of a program.

package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tracedag/tracedag/internal/manual"
)

// addMan adds the hidden command that writes the program's man pages into a folder.
func (p *Program) addMan(root *cobra.Command) {
	root.AddCommand(&cobra.Command{
		Use: "man FOLDER", Short: "write the man pages", Hidden: true, Args: cobra.ExactArgs(1),
		Long: "Write the man pages of the program into a folder, which is created if it is missing.",
		RunE: func(_ *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o777); err != nil {
				return err
			}
			for _, page := range manual.ManPages(root, func(doc string) bool {
				// All programs read the formats: only traceconv has their pages.
				return root.Name() == "traceconv" || !strings.HasPrefix(doc, "formats/")
			}) {
				out, err := p.Create(filepath.Join(args[0], page.Name+".1"), false)
				if err != nil {
					return err
				}
				fmt.Fprint(out, page.Text)
				if err := out.Commit(); err != nil {
					return err
				}
			}
			return nil
		},
	})
}
