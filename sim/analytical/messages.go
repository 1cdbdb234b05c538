package analytical

import "math/bits"

// Contexts of tags. Those of the trace's messages are communicators; those of collectives follow.
const (
	contextCollective = 1 << 30
	contextRequest    = 1 << 31 // added to a message's context to announce that its receiver is ready
)

// keyOf returns the key of a message of the trace.
func (e *engine) keyOf(n *npu, o *op, i uint32, from, to int32) key {
	k := key{tag: uint64(n.g.tag(i)), context: uint32(o.comm), from: from, to: to}
	if e.o.ExactSizes {
		k.tag, k.size = shortTag(k.tag), o.bytes
	}
	return k
}

// shortTag returns ASTRA-sim's shortened tag of a message, which differs from the tags of collectives.
func shortTag(tag uint64) uint64 {
	return uint64(uint32(tag)) % 500_000_000
}

func (e *engine) sendOp(r int32, n *npu, o *op, i uint32) {
	k := e.keyOf(n, o, i, r, o.peer)
	e.send(&k, o.bytes, i)
}

func (e *engine) recvOp(r int32, n *npu, o *op, i uint32) {
	if e.wild != nil {
		e.recvAny(r, n, o, i)
		return
	}
	k := e.keyOf(n, o, i, o.peer, r)
	e.receive(&k, newEvent(recvMet, r, i))
}

// send sends a message. sender is the NPU's op that ends when the message arrives, or noOp.
func (e *engine) send(k *key, size uint64, sender uint32) {
	e.sendAs(k, size, sender, false)
}

// sendAs is send; with custom, sender is an op of a custom collective.
func (e *engine) sendAs(k *key, size uint64, sender uint32, custom bool) {
	m := e.matcher.newMessage()
	e.matcher.messages[m] = message{size: size, from: k.from, to: k.to, sender: sender, at: k.from, sw: -1,
		custom: custom}
	if e.wild != nil && !custom && k.context < contextCollective {
		e.wild.sent(m, k)
	} else {
		e.matcher.send(k, m)
	}
	if e.layout != nil {
		e.departs(m)
	}
	e.countMessages(1, 0, size)
	if !e.system.Rendezvous {
		e.transmit(m)
		return
	}
	request := requestKey(k)
	e.meetOrWait(&request, newEvent(readyToSend, k.from, m))
}

// countMessages counts messages of bytesHigh * 2^64 + bytesLow bytes in total.
func (e *engine) countMessages(messages int64, bytesHigh, bytesLow uint64) {
	e.messages += messages
	var carry uint64
	e.bytesLow, carry = bits.Add64(e.bytesLow, bytesLow, 0)
	e.bytesHigh += bytesHigh + carry
}

// requestKey returns the key of the message that announces a ready receiver. Its size is constant, so messages of a tag
// are requested in order, regardless of their sizes.
func requestKey(k *key) key {
	return key{tag: k.tag, context: k.context | contextRequest, from: k.to, to: k.from}
}

// receive triggers ev when the message of the key has arrived.
func (e *engine) receive(k *key, ev event) {
	if !e.system.Rendezvous {
		e.meetOrWait(k, ev)
		return
	}
	m := e.matcher.newMessage()
	if len(e.spareRequests) == 0 {
		e.requests = append(e.requests, request{})
		e.spareRequests = append(e.spareRequests, uint32(len(e.requests)-1))
	}
	last := len(e.spareRequests) - 1
	number := e.spareRequests[last]
	e.spareRequests = e.spareRequests[:last]
	e.requests[number] = request{key: *k, meets: ev}
	e.matcher.messages[m] = message{size: rendezvousSize, from: k.to, to: k.from, at: k.to, sw: -1, control: true,
		sender: number}
	asks := requestKey(k)
	e.matcher.send(&asks, m)
	e.transmit(m)
}

// meetOrWait adds a receive. If its message has already arrived, ev occurs now, after the pending events of this time.
func (e *engine) meetOrWait(k *key, ev event) {
	m := e.matcher.receive(k, ev)
	if m == 0 || !e.matcher.messages[m].there {
		return
	}
	if ev.kind() == recvMet {
		e.transferred(m, ev.number())
	}
	e.matcher.forget(m)
	e.queue.addNow(ev)
}

// transmit injects a message into the network, as soon as its NIC is free.
func (e *engine) transmit(i uint32) {
	if int(i) < len(e.flights) {
		e.flights[i].start = e.queue.now
	}
	if e.sharing == nil || !e.share(i) {
		e.inject(i)
	}
}

// inject injects a message whose NIC is free.
func (e *engine) inject(i uint32) {
	m := &e.matcher.messages[i]
	if e.links.linked && m.from != m.to {
		e.enterLink(i)
		return
	}
	delay, ok := e.links.delay(m.from, m.to, m.size)
	if !ok {
		e.fail(e.tooLong(newEvent(arrived, 0, i)))
		return
	}
	if e.orders != nil && delay == 0 && m.from != m.to { // the order of the two NPUs matters
		e.fail(errOrder)
	}
	e.after(delay, newEvent(arrived, 0, i))
}

// enterLink puts a message on the next link of its route, or makes it wait for the link.
func (e *engine) enterLink(i uint32) {
	m := &e.matcher.messages[i]
	l, next, sw := e.links.hop(m.at, m.to, int(m.sw))
	m.at, m.sw, m.queued = next, int8(sw), 0
	k := &e.links.all[l]
	if !k.busy {
		e.takeLink(l, i)
		return
	}
	if k.first == 0 {
		k.first = i
	} else {
		e.matcher.messages[k.last].queued = i
	}
	k.last = i
}

func (e *engine) takeLink(l int32, i uint32) {
	m := &e.matcher.messages[i]
	e.links.all[l].busy = true
	d := e.links.dimOf(l)
	serialization := float64(m.size) / d.rate
	reached, ok := truncate(d.latency + serialization)
	free, _ := truncate(serialization)
	if !ok {
		e.fail(e.tooLong(newEvent(hopped, 0, i)))
		return
	}
	e.after(reached, newEvent(hopped, 0, i))
	e.after(free, newEvent(linkFree, 0, uint32(l)))
}

// reachDevice continues a message's route from a device, or delivers the message.
func (e *engine) reachDevice(i uint32) {
	if m := &e.matcher.messages[i]; m.sw < 0 && m.at == m.to {
		e.arrive(i)
		return
	}
	e.enterLink(i)
}

// freeLink gives a link to the next waiting message.
func (e *engine) freeLink(l int32) {
	k := &e.links.all[l]
	k.busy = false
	if i := k.first; i != 0 {
		k.first = e.matcher.messages[i].queued
		e.takeLink(l, i)
	}
}

// arrive ends first the send and then the receive of a message.
func (e *engine) arrive(i uint32) {
	m := &e.matcher.messages[i]
	m.there = true
	meets, from, sender := m.meets, m.from, m.sender
	var sent uint64 // with classes
	if e.orders != nil {
		delay, _ := e.links.delay(from, m.to, m.size)
		sent = e.queue.now - delay
	}
	if e.layout != nil {
		e.arrives(i)
	}
	switch {
	case m.custom:
		e.endCustom(from, sender)
	case m.control:
		r := e.requests[sender]
		e.spareRequests = append(e.spareRequests, sender)
		e.meetOrWait(&r.key, r.meets)
	case sender != noOp:
		e.begins(from, false, sent)
		e.end(from, sender)
	}
	if e.wild != nil && e.wild.arrived(e, i) {
		return
	}
	if meets == 0 {
		return
	}
	if meets.kind() == recvMet {
		e.transferred(i, meets.number())
	}
	e.matcher.forget(i)
	switch r, k := meets.npu(), meets.number(); meets.kind() {
	case packetMet:
		e.packet(k)
	case recvMet:
		e.begins(r, false, sent)
		e.end(r, k)
	case graphMet:
		e.endCustom(r, k)
	case readyToSend:
		e.transmit(k)
	}
}
