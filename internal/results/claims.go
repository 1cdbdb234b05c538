package results

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Times of claims.
const (
	renewEvery = 30 * time.Second
	staleAfter = 120 * time.Second
)

// Claims are the runs that this process has begun: a file runs/RR/RUN.claim each, renewed every 30 s. They spare other
// processes the same run. A run that two processes claim is only computed twice.
type Claims struct {
	folder Folder
	holder string
	lock   sync.Mutex
	held   map[string]bool
	ended  chan struct{}
}

// NewClaims returns no claims yet.
func (f Folder) NewClaims() *Claims {
	host, _ := os.Hostname()
	c := &Claims{folder: f, holder: fmt.Sprintf("process %d on %s\n", os.Getpid(), host), held: make(map[string]bool),
		ended: make(chan struct{})}
	go func() {
		for {
			select {
			case <-time.After(renewEvery):
				c.renew()
			case <-c.ended:
				return
			}
		}
	}()
	return c
}

// claim returns the name of the claim of a run.
func (f Folder) claim(id string) string { return filepath.Join(string(f), "runs", id[:2], id+".claim") }

// Take claims a run. It reports false if another process has a fresh claim.
func (c *Claims) Take(id string) (mine bool, err error) {
	name := c.folder.claim(id)
	for range 10 {
		file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		switch {
		case err == nil:
			_, err = file.WriteString(c.holder)
			c.lock.Lock()
			c.held[id] = true
			c.lock.Unlock()
			return true, errors.Join(err, file.Close())
		case errors.Is(err, fs.ErrNotExist):
			if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
				return false, err
			}
			continue
		case !errors.Is(err, fs.ErrExist):
			return false, err
		}
		fresh, err := c.fresh(name)
		if fresh || err != nil {
			return false, err
		}
		os.Remove(name)
	}
	return false, nil // others take it all the time
}

// fresh reports whether a claim is younger than two minutes, by the clock that dates files.
func (c *Claims) fresh(name string) (bool, error) {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	clock, err := createBeside(filepath.Join(string(c.folder), "runs", "clock"))
	if err != nil {
		return false, err
	}
	defer os.Remove(clock.Name())
	defer clock.Close()
	if _, err := clock.WriteString(c.holder); err != nil {
		return false, err
	}
	now, err := clock.Stat()
	if err != nil {
		return false, err
	}
	return now.ModTime().Sub(info.ModTime()) < staleAfter, nil
}

// renew writes all claims again.
func (c *Claims) renew() {
	c.lock.Lock()
	defer c.lock.Unlock()
	for id := range c.held {
		os.WriteFile(c.folder.claim(id), []byte(c.holder), 0o666) // a claim that is not renewed goes stale
	}
}

// Release ends claims.
func (c *Claims) Release(ids ...string) {
	c.lock.Lock()
	defer c.lock.Unlock()
	for _, id := range ids {
		if c.held[id] {
			delete(c.held, id)
			os.Remove(c.folder.claim(id))
		}
	}
}

// Close ends all claims.
func (c *Claims) Close() {
	close(c.ended)
	c.lock.Lock()
	var ids []string
	for id := range c.held {
		ids = append(ids, id)
	}
	c.lock.Unlock()
	c.Release(ids...)
}
