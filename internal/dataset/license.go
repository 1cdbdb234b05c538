package dataset

import (
	"embed"
	"fmt"
	"strings"
	"sync"
)

// LicenseName is the name of the file with the text of the licence.
const LicenseName = "LICENSE"

// otherLicense is the licence of a set whose licence has no SPDX identifier.
const otherLicense = "other"

// licenseFiles has the SPDX licence list (spdx.txt) and texts of licences, each in a file IDENTIFIER.txt.
//
//go:embed licenses/*.txt
var licenseFiles embed.FS

// licenseList is the SPDX licence list.
type licenseList struct {
	ids        []string // in alphabetical order, without deprecated ones
	byLower    map[string]string
	deprecated map[string]bool
}

var spdx = sync.OnceValue(func() *licenseList {
	list := &licenseList{byLower: map[string]string{}, deprecated: map[string]bool{}}
	for line := range strings.Lines(licenseFile("spdx")) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		id, state, _ := strings.Cut(strings.TrimSpace(line), " ")
		list.byLower[strings.ToLower(id)] = id
		if state != "" {
			list.deprecated[id] = true
		} else {
			list.ids = append(list.ids, id)
		}
	}
	return list
})

// licenseFile returns an embedded file, "" if there is none.
func licenseFile(id string) string {
	text, err := licenseFiles.ReadFile("licenses/" + id + ".txt")
	if err != nil {
		return "" // the only error of an embedded file system
	}
	return string(text)
}

// licenseURL returns the URL of a licence of the set or of one of its traces.
func (m *Metadata) licenseURL(id string) string {
	if id == otherLicense {
		return m.LicenseURL
	}
	return "https://spdx.org/licenses/" + id
}

// License returns name and content of the file with the licence of a set. It is the full text of a licence that is
// common for data, otherwise its identifier and URL. ok is false if the set has no licence.
func License(m *Metadata) (name string, text []byte, ok bool) {
	if m.License == "" {
		return LicenseName, nil, false
	}
	full := licenseFile(m.License)
	if full == "" {
		return LicenseName, fmt.Appendf(nil, "%s\n%s\n", m.License, m.licenseURL(m.License)), true
	}
	year, _, _ := strings.Cut(m.Date, "-")
	holders := agentNames(m.Creators, ", ")
	return LicenseName, []byte(strings.NewReplacer("<year>", year, "<copyright holders>", holders, "<owner>.\n",
		holders+"\n").Replace(full)), true
}

// hubLicenses are the licences with another name on Hugging Face than their SPDX identifier in lower case.
var hubLicenses = map[string]string{"ODbL-1.0": "odbl", "ODC-By-1.0": "odc-by", "PDDL-1.0": "pddl",
	"GFDL-1.3-only": "gfdl", "GFDL-1.3-or-later": "gfdl", "AGPL-3.0-only": "agpl-3.0", "AGPL-3.0-or-later": "agpl-3.0",
	"GPL-2.0-only": "gpl-2.0", "GPL-2.0-or-later": "gpl-2.0", "GPL-3.0-only": "gpl-3.0",
	"GPL-3.0-or-later": "gpl-3.0", "LGPL-2.1-only": "lgpl-2.1", "LGPL-2.1-or-later": "lgpl-2.1",
	"LGPL-3.0-only": "lgpl-3.0", "LGPL-3.0-or-later": "lgpl-3.0", "LGPLLR": "lgpl-lr"}

// hubNames are the identifiers in lower case that Hugging Face accepts
// (https://huggingface.co/docs/hub/repositories-licenses).
const hubNames = " apache-2.0 mit afl-3.0 artistic-2.0 bsl-1.0 bsd-2-clause bsd-3-clause bsd-3-clause-clear c-uda " +
	"cc0-1.0 cc-by-2.0 cc-by-2.5 cc-by-3.0 cc-by-4.0 cc-by-sa-3.0 cc-by-sa-4.0 cc-by-nc-2.0 cc-by-nc-3.0 " +
	"cc-by-nc-4.0 cc-by-nd-4.0 cc-by-nc-nd-3.0 cc-by-nc-nd-4.0 cc-by-nc-sa-2.0 cc-by-nc-sa-3.0 cc-by-nc-sa-4.0 " +
	"cdla-sharing-1.0 cdla-permissive-1.0 cdla-permissive-2.0 wtfpl ecl-2.0 epl-1.0 epl-2.0 etalab-2.0 eupl-1.1 " +
	"eupl-1.2 isc lppl-1.3c ms-pl mpl-2.0 osl-3.0 postgresql ofl-1.1 ncsa unlicense zlib "

// hubLicense returns the identifier of a licence on Hugging Face, "other" if it has none.
func hubLicense(id string) string {
	if name, ok := hubLicenses[id]; ok {
		return name
	}
	if lower := strings.ToLower(id); strings.Contains(hubNames, " "+lower+" ") {
		return lower
	}
	return otherLicense
}

// kaggleLicenses are the licences that Kaggle accepts, by SPDX identifier
// (https://github.com/Kaggle/kaggle-cli/wiki/Dataset-Metadata).
var kaggleLicenses = map[string]string{
	"Apache-2.0": "apache-2.0", "PDDL-1.0": "PDDL", "ODC-By-1.0": "ODC-BY-1.0", "ODbL-1.0": "ODbL-1.0",
	"CC0-1.0": "CC0-1.0", "CC-BY-3.0": "CC-BY-3.0", "CC-BY-3.0-IGO": "CC-BY-3.0-IGO", "CC-BY-4.0": "CC-BY-4.0",
	"CC-BY-SA-3.0": "CC-BY-SA-3.0", "CC-BY-SA-4.0": "CC-BY-SA-4.0", "CC-BY-NC-4.0": "CC-BY-NC-4.0",
	"CC-BY-NC-SA-3.0-IGO": "CC-BY-NC-SA-3.0-IGO", "CC-BY-NC-SA-4.0": "CC-BY-NC-SA-4.0",
	"CC-BY-ND-4.0": "CC-BY-ND-4.0", "CC-BY-NC-ND-4.0": "CC-BY-NC-ND-4.0",
	"CDLA-Permissive-1.0": "CDLA-Permissive-1.0", "CDLA-Sharing-1.0": "CDLA-Sharing-1.0",
	"GPL-2.0-only": "GPL-2.0", "GPL-3.0-only": "GPL-3.0", "LGPL-3.0-only": "LGPL-3.0", "AGPL-3.0-only": "AGPL-3.0",
}

// kaggleLicense returns the name of a licence on Kaggle, "other" if it has none.
func kaggleLicense(id string) string {
	if name, ok := kaggleLicenses[id]; ok {
		return name
	}
	return otherLicense
}
