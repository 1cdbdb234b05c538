package analytical

import (
	"math/rand/v2"
	"testing"
)

// TestMeeting matches random sends and receives, and compares with lists.
func TestMatcher(t *testing.T) {
	type list struct{ messages, posts []event }
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 2))
		m := newMatcher()
		lists := map[key]*list{}
		numbers := map[uint32]event{} // of messages that wait
		keys := 1 + random.IntN(3000)
		for n := range 20_000 {
			k := key{tag: random.Uint64N(uint64(keys)), size: random.Uint64N(2), from: random.Int32N(2), to: 1}
			if lists[k] == nil {
				lists[k] = &list{}
			}
			l, ev := lists[k], newEvent(recvMet, 0, uint32(n))
			if random.IntN(2) == 0 {
				i := m.newMessage()
				m.messages[i] = message{}
				m.send(&k, i)
				met := m.messages[i].meets
				if len(l.posts) > 0 {
					if met != l.posts[0] {
						t.Fatalf("seed %d, %d: message meets %x, expected %x", seed, n, met, l.posts[0])
					}
					l.posts = l.posts[1:]
					m.forget(i)
					continue
				}
				if met != 0 {
					t.Fatalf("seed %d, %d: message meets %x, expected nothing", seed, n, met)
				}
				numbers[i] = ev
				l.messages = append(l.messages, ev)
				continue
			}
			i := m.receive(&k, ev)
			if len(l.messages) == 0 {
				if i != 0 {
					t.Fatalf("seed %d, %d: receive meets %x, expected nothing", seed, n, numbers[i])
				}
				l.posts = append(l.posts, ev)
				continue
			}
			if numbers[i] != l.messages[0] || m.messages[i].meets != ev {
				t.Fatalf("seed %d, %d: receive meets %x, expected %x", seed, n, numbers[i], l.messages[0])
			}
			l.messages = l.messages[1:]
			m.forget(i)
		}
	}
}
