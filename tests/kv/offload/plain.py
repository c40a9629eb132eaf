"""The lower cache tiers word for word: slot by slot, transfer by transfer (`spec 11`).

What the real tiers are held against. A block is the tokens of a prompt up to its end; everything is found by going
through lists.
"""

from __future__ import annotations

import math
from typing import Any

from dynamo_sim.engine.step import Step
from dynamo_sim.errors import SimulationError
from dynamo_sim.kv.offload.settings import OffloadSettings
from tests.engine.vllm.plain import PlainSequence, PlainVllm
from tests.engine.vllm.plain_pool import Block, PlainPool


class PlainLink:
    """Processor sharing (`spec 11, 2`)."""

    def __init__(self, gbps: float) -> None:
        self.rate = gbps * 1e6 if gbps else math.inf
        self.last = 0.0
        self.active: list[list[Any]] = []

    def start(self, now: float, size: int, payload: Any) -> None:
        self.last = max(now, self.last)
        self.active.append([0.0 if self.rate == math.inf else float(size), payload])

    def advance(self, now: float) -> list[Any]:
        landed: list[Any] = []
        if now < self.last:
            return landed
        while self.active:
            rate = self.rate / float(len(self.active))
            rest = [remaining for remaining, _ in self.active]
            i = rest.index(min(rest))
            t = 0.0 if rate == math.inf else rest[i] / rate
            if self.last + t > now + 1e-9:
                if now > self.last:
                    self.take((now - self.last) * rate)
                break
            if t > 0:
                self.take(t * rate)
            self.last += t
            landed.append(self.active[i][1])
            self.active[i] = self.active[-1]
            self.active.pop()
        self.last = max(self.last, now)
        return landed

    def take(self, size: float) -> None:
        for transfer in self.active:
            transfer[0] = max(transfer[0] - size, 0.0)

    @property
    def deadline(self) -> float:
        if not self.active:
            return math.inf
        if self.rate == math.inf:
            return self.last
        least = min(remaining for remaining, _ in self.active)
        return self.last + sum(min(remaining, least) for remaining, _ in self.active) / self.rate


class PlainTier:
    """Slots of G2 or G3, each with what it holds; ticks of those nobody holds (`spec 11, 7`)."""

    def __init__(self, slots: int, size: int, caching: bool) -> None:
        self.slots: list[Block | str | None] = [None] * slots  # a block, "coming", or nothing
        self.size, self.caching = size, caching
        self.holders: dict[Block, int] = {}
        self.ticks: dict[Block, int] = {}
        self.tick = 0
        self.reserved = 0

    def __contains__(self, block: Block) -> bool:
        return block in self.slots

    @property
    def available(self) -> int:
        return self.slots.count(None) + len(self.ticks)

    def enter(self, block: Block) -> None:
        self.ticks[block] = self.tick
        self.tick += 1

    def take_slots(self, count: int) -> bool:
        if count > self.available:
            return False
        for _ in range(count):
            if None not in self.slots:
                parents = {block[: -self.size] for block in self.ticks} if self.caching else set()
                victim = min((b for b in self.ticks if b not in parents), key=self.ticks.__getitem__)
                del self.ticks[victim]
                self.slots[self.slots.index(victim)] = None
            self.slots[self.slots.index(None)] = "coming"
        return True

    def land(self, block: Block, held: bool = False) -> None:
        slot = self.slots.index("coming")
        if block in self.slots:
            self.slots[slot] = None
        else:
            self.slots[slot] = block
            self.enter(block)
        if held:
            self.hold([block])

    def hold(self, blocks: list[Block]) -> None:
        for block in blocks:
            self.ticks.pop(block, None)
            self.holders[block] = self.holders.get(block, 0) + 1

    def give_back(self, blocks: list[Block]) -> None:
        for block in blocks:
            self.holders[block] -= 1
            if not self.holders[block]:
                del self.holders[block]
                self.enter(block)

    def run(self, blocks: list[Block]) -> int:
        count = 0
        while count < len(blocks) and blocks[count] in self:
            count += 1
        return count


class PlainLease:
    def __init__(self) -> None:
        self.waits_for: list[Block] = []  # blocks whose copies have not landed
        self.dropped = 0


class Blocked(Exception):
    """Slots will come free at the end of a lease; nothing was taken."""

    def __init__(self, lease: PlainLease) -> None:
        self.lease = lease


class PlainShared:
    """G3, G4 and their links."""

    def __init__(self, settings: OffloadSettings, size: int, caching: bool) -> None:
        self.disk = PlainTier(settings.disk_blocks, size, caching) if settings.disk_blocks else None
        self.objects: list[Block] | None = [] if settings.object_store else None
        self.links = {
            name: PlainLink(settings.gbps[name]) for name in ("g2_to_g3", "g3_to_g2", "g2_to_g4", "g4_to_g2")
        }
        self.workers: list[PlainTiers] = []

    def advance(self, now: float) -> None:
        for link in self.links.values():
            for owner, kind, data in link.advance(now):
                if kind == "disk":
                    for block in data:
                        self.disk.land(block)  # type: ignore[union-attr]
                elif kind == "store":
                    assert self.objects is not None
                    self.objects += data
                owner.found.append((kind, data))
                owner.found_at = min(owner.found_at, now)


class PlainSwapIn:
    def __init__(self, request: Any, blocks: list[Block], g2: int, g3: int, prefix: int) -> None:
        self.request, self.blocks, self.prefix = request, blocks, prefix
        self.from_disk = blocks[g2 : g2 + g3]
        self.from_store = blocks[g2 + g3 :]
        self.staged = len(self.from_disk) + len(self.from_store)
        self.held = blocks[:g2]
        self.store_done, self.disk_done = not self.from_store, not self.from_disk
        self.stopped = False


class PlainTiers:
    """The tiers of one worker."""

    def __init__(self, settings: OffloadSettings, shared: PlainShared, size: int, caching: bool) -> None:
        self.settings, self.shared = settings, shared
        self.host = PlainTier(settings.host_blocks, size, caching)
        self.out, self.back = PlainLink(settings.gbps["g1_to_g2"]), PlainLink(settings.gbps["g2_to_g1"])
        self.waiting: list[tuple[PlainLease, list[Block]]] = []
        self.to_disk: list[list[Block]] = []
        self.to_store: list[list[Block]] = []
        self.disk_copies = self.store_copies = 0
        self.found: list[Any] = []
        self.found_at = math.inf
        self.parked: list[PlainSwapIn] = []
        self.now = 0.0
        self.free_slots = 0  # of the GPU, since the last poll
        shared.workers.append(self)

    @property
    def deadline(self) -> float:
        links = (self.out, self.back, *self.shared.links.values())
        return min(self.found_at, *(link.deadline for link in links))

    def bytes(self, blocks: list[Block]) -> int:
        return len(blocks) * self.settings.block_bytes

    def evict(self, victims: list[Block]) -> PlainLease | None:
        lease, passed = PlainLease(), []
        for block in victims:
            waits = any(block in blocks for _, blocks in self.waiting[1:])
            if block in self.host or waits or self.host.reserved + 1 > self.host.available:
                lease.dropped += 1
            else:
                self.host.reserved += 1
                passed.append(block)
        if not passed:
            return None
        lease.waits_for = list(passed)
        while passed:
            self.waiting.append((lease, passed[: self.settings.batch_blocks]))
            del passed[: self.settings.batch_blocks]
        self.start_batches()
        return lease

    def start_batches(self) -> None:
        while self.waiting and len(self.out.active) < self.settings.batch_blocks:
            lease, blocks = self.waiting.pop(0)
            if self.host.take_slots(len(blocks)):
                self.out.start(self.now, self.bytes(blocks), (lease, blocks))
            else:
                self.host.reserved -= len(blocks)
                lease.dropped += len(blocks)
                self.settle(lease, blocks, 0)

    def settle(self, lease: PlainLease, blocks: list[Block], free: int) -> None:
        for block in blocks:
            lease.waits_for.remove(block)
        self.free_slots += free
        if not lease.waits_for:
            self.free_slots += lease.dropped

    def poll(self, now: float) -> list[PlainSwapIn]:
        self.now = now
        landed, swapped = self.out.advance(now), self.back.advance(now)
        self.shared.advance(now)
        for lease, blocks in landed:
            for block in blocks:
                self.host.land(block)
            self.host.reserved -= len(blocks)
            self.settle(lease, blocks, len(blocks))
        if landed:
            self.start_batches()
        found, self.found, self.found_at = self.found, [], math.inf
        for kind, data in found:
            self.settle_shared(kind, data)
        for _, blocks in landed:
            self.copy_on(blocks)
        over = [s for s in reversed(self.parked) if s.stopped or s in swapped]
        for swap_in in over:
            self.parked.remove(swap_in)
            if not swap_in.stopped:
                self.host.give_back(swap_in.blocks)
        return over

    def settle_shared(self, kind: str, data: Any) -> None:
        if kind == "disk":
            self.shared.disk.reserved -= len(data)  # type: ignore[union-attr]
            self.host.give_back(data)
            self.disk_copies -= 1
            self.start_copies()
        elif kind == "store":
            self.host.give_back(data)
            self.store_copies -= 1
            self.start_copies()
        else:
            blocks = data.from_store if kind == "from store" else data.from_disk
            for block in blocks:
                self.host.land(block, held=True)
            data.held = data.held + blocks
            if kind == "from disk":
                self.shared.disk.give_back(blocks)  # type: ignore[union-attr]
                data.disk_done = True
            else:
                data.store_done = True
            self.go_on(data)

    def copy_on(self, blocks: list[Block]) -> None:
        disk, objects = self.shared.disk, self.shared.objects
        if disk is not None:
            passed = []
            for block in blocks:
                waits = any(block in batch for w in self.shared.workers for batch in w.to_disk[1:])
                if block in self.host and block not in disk and not waits and disk.reserved < disk.available:
                    disk.reserved += 1
                    passed.append(block)
            if passed:
                self.host.hold(passed)
                self.to_disk.append(passed)
        if objects is not None:
            passed = []
            for block in blocks:
                waits = any(block in batch for w in self.shared.workers for batch in w.to_store)
                if block in self.host and block not in objects and not waits:
                    passed.append(block)
            if passed:
                self.host.hold(passed)
                self.to_store.append(passed)
        self.start_copies()

    def start_copies(self) -> None:
        disk = self.shared.disk
        while self.to_disk and not self.disk_copies:
            blocks = self.to_disk.pop(0)
            assert disk is not None
            if disk.take_slots(len(blocks)):
                self.disk_copies += 1
                self.shared.links["g2_to_g3"].start(self.now, self.bytes(blocks), (self, "disk", blocks))
            else:
                disk.reserved -= len(blocks)
                self.host.give_back(blocks)
        while self.to_store and self.store_copies < self.settings.batch_blocks:
            blocks = self.to_store.pop(0)
            self.store_copies += 1
            self.shared.links["g2_to_g4"].start(self.now, self.bytes(blocks), (self, "store", blocks))

    def go_on(self, swap_in: PlainSwapIn) -> None:
        if not swap_in.store_done:
            self.stage(swap_in, "g4_to_g2", "from store", swap_in.from_store)
        elif not swap_in.disk_done:
            self.stage(swap_in, "g3_to_g2", "from disk", swap_in.from_disk)
        else:
            self.host.reserved -= swap_in.staged
            self.back.start(self.now, self.bytes(swap_in.blocks), swap_in)

    def stage(self, swap_in: PlainSwapIn, link: Any, kind: str, blocks: list[Block]) -> None:
        if self.host.take_slots(len(blocks)):
            self.shared.links[link].start(self.now, self.bytes(blocks), (self, kind, swap_in))
            return
        swap_in.stopped = True
        self.host.reserved -= swap_in.staged
        self.host.give_back([block for block in swap_in.blocks if block in swap_in.held])
        if not swap_in.disk_done:
            self.shared.disk.give_back(swap_in.from_disk)  # type: ignore[union-attr]


class PlainOffloadPool(PlainPool):
    """A pool whose evictions take time; `Blocked` says until when."""

    def __init__(self, blocks: int, size: int, caching: bool, tiers: PlainTiers) -> None:
        super().__init__(blocks, size, caching)
        self.tiers = tiers

    def take(self, tokens: list[Any], full: int, first: int, last: int) -> bool:
        found = [self.block(tokens, i) for i in range(first, min(full, last))]
        hits = [block for block in found if block in self.inactive]
        for block in hits:
            del self.inactive[block]
        known = sum(block in self.owners for block in found) + len(hits)
        try:
            room = self.slots(last - first - known)
        except Blocked:
            for block in hits:
                self.enter(block)
            raise
        for block in hits:
            self.enter(block)
        return room and super().take(tokens, full, first, last)

    def open_partial(self) -> bool:
        return self.slots(1) and super().open_partial()

    def reserve(self, count: int) -> bool:
        return self.slots(count) and super().reserve(count)

    def slots(self, count: int) -> bool:
        """Make ``count`` slots free, which stay free; False without room (`spec 11, 3.2`)."""
        if self.free + len(self.inactive) < count:
            return False
        if self.free >= count:
            return True
        free = self.free
        victims = self.make_free(count)
        self.announce_removed(victims)
        lease = self.tiers.evict(victims)
        if lease is not None:
            self.free = free
            raise Blocked(lease)
        return True

    def hold(self, blocks: list[Block]) -> None:
        for block in blocks:
            self.inactive.pop(block, None)
            self.owners[block] = self.owners.get(block, 0) + 1

    def give_back(self, blocks: list[Block]) -> None:
        for block in blocks:
            self.owners[block] -= 1
            if not self.owners[block]:
                del self.owners[block]
                self.enter(block)


def living(r: PlainSequence) -> bool:
    lease = getattr(r, "lease", None)
    return lease is not None and bool(lease.waits_for)


class PlainOffload(PlainVllm):
    """A plain vLLM-style worker above plain tiers."""

    def __init__(
        self, args: Any, timing: Any, sampler: Any, settings: OffloadSettings, shared: PlainShared
    ) -> None:
        super().__init__(args, timing, None, sampler)
        caching = args.enable_prefix_caching
        self.tiers = PlainTiers(settings, shared, self.size, caching)
        self.pool: PlainOffloadPool = PlainOffloadPool(args.num_gpu_blocks, self.size, caching, self.tiers)

    request_count = property(lambda self: len(self.waiting) + len(self.running) + len(self.tiers.parked))

    # ------------------------------------------------------------ polls (11, 4)

    def poll(self, now_ms: float) -> None:
        over = self.tiers.poll(now_ms)
        self.pool.free += self.tiers.free_slots
        self.tiers.free_slots = 0
        for swap_in in over:
            for block in swap_in.blocks:
                if swap_in.stopped or block in self.pool.owners or block in self.pool.inactive:
                    self.pool.free += 1
                else:
                    self.pool.enter(block)
            r = swap_in.request
            self.pool.give_back([self.pool.block(r.tokens, i) for i in range(swap_in.prefix)])
            self.waiting.appendleft(r)

    def start(self, now_ms: float, max_passes: int) -> Step:
        self.poll(now_ms)
        step = super().start(now_ms, max_passes)
        if step.ends_ms[0] <= now_ms and self.tiers.deadline < math.inf:
            step.ends_ms[0] = max(self.tiers.deadline, now_ms)
            step.progress = True
        return step

    # ------------------------------------------------------------ swap-ins (11, 5)

    def admit(self, now_ms: float) -> tuple[int, list[PlainSequence]]:
        admissions = 0
        rejected: list[PlainSequence] = []
        while not self.preempted_any and len(self.running) < self.max_seqs and self.waiting:
            r = self.waiting[0]
            if living(r):
                break
            if r.status == "waiting" and self.needs_too_much(r):
                rejected.append(self.waiting.popleft())
                continue
            cached = self.decide(r)
            if cached is None:
                break
            if r.status == "waiting":
                try:
                    if self.park(r, cached // self.size):
                        self.waiting.popleft()
                        continue
                except Blocked as blocked:
                    r.lease = blocked.lease  # type: ignore[attr-defined]
                    break
            before = self.budget
            if self.schedule(r, cached) != "scheduled":
                break
            self.waiting.remove(r)
            self.running.append(r)
            r.status = "running"
            r.request.note_admission(now_ms, cached)
            admissions += 1
            if self.budget == before == 0:
                break
        return admissions, rejected

    def park(self, r: PlainSequence, skip: int) -> bool:
        pool, host, shared = self.pool, self.tiers.host, self.tiers.shared
        wanted = [pool.block(r.tokens, i) for i in range(skip, r.prompt // self.size)]
        if not wanted:
            return False
        prefix = [pool.block(r.tokens, i) for i in range(skip)]
        pool.hold(prefix)
        g2 = host.run(wanted)
        g3 = 0 if shared.disk is None else shared.disk.run(wanted[g2:])
        g4 = 0
        while (
            shared.objects is not None
            and g2 + g3 + g4 < len(wanted)
            and wanted[g2 + g3 + g4] in shared.objects
        ):
            g4 += 1
        kept = sum(block in host.ticks for block in wanted[:g2])
        staged = g3 + g4
        try:
            if staged and host.reserved + staged <= host.available and staged <= host.available - kept:
                host.reserved += staged
                try:
                    room = pool.slots(g2 + staged)
                except Blocked:
                    host.reserved -= staged
                    raise
                if not room:
                    host.reserved -= staged
                else:
                    host.hold(wanted[:g2])
            else:
                g3 = g4 = staged = 0
                host.hold(wanted[:g2])
                try:
                    room = g2 > 0 and pool.slots(g2)
                except Blocked:
                    host.give_back(wanted[:g2])
                    raise
                if not room:
                    host.give_back(wanted[:g2])
        except Blocked:
            pool.give_back(prefix)
            raise
        if not room:
            pool.give_back(prefix)
            return False
        pool.free -= g2 + staged
        swap_in = PlainSwapIn(r, wanted[: g2 + staged], g2, g3, skip)
        self.tiers.parked.append(swap_in)
        if g3:
            shared.disk.hold(swap_in.from_disk)  # type: ignore[union-attr]
        self.tiers.go_on(swap_in)
        return True

    # ------------------------------------------------------------ blocked requests (11, 9)

    def schedule(self, r: PlainSequence, cached: int | None) -> str:
        if living(r):
            return "blocked"
        try:
            return super().schedule(r, cached)
        except Blocked as blocked:
            r.lease = blocked.lease  # type: ignore[attr-defined]
            return "blocked"

    def preempt(self, requester: PlainSequence | None) -> PlainSequence | None:
        if self.guaranteed:
            return None
        order = self.running if self.fifo else self.running[::-1]
        victim = next((r for r in order if not living(r)), None)
        if victim is None:
            return None
        alone = len(self.running) == 1 and self.pool.active == self.blocks(victim.allocated)
        if alone and (requester is victim or requester is None):
            raise SimulationError("a request preempts itself without end")
        self.running.remove(victim)
        self.preemptions += 1
        victim.status = "preempted"
        self.pool.release(victim.tokens, victim.full, self.blocks(victim.allocated))
        victim.computed = victim.allocated = 0
        self.waiting.appendleft(victim)
        return victim

    def emit(self, step: Step, start_ms: float) -> None:
        ready = self.ready()
        if not ready:
            return
        end_ms = start_ms + self.decode_ms(ready)
        for r in ready:
            while r in self.running and not living(r):
                r.generate()
                opens = len(r.tokens) % self.size == 1
                if opens:
                    self.promote(r)
                    try:
                        room = self.pool.open_partial()
                    except Blocked as blocked:
                        r.take_back()
                        r.lease = blocked.lease  # type: ignore[attr-defined]
                        break
                    if not room:
                        r.take_back()
                        if self.preempt(r) is None:
                            break
                        continue
                step.tokens += 1
                if opens and r.gen < r.max_out:
                    r.allocated = len(r.tokens)
                self.note(r, step, end_ms)
                break
        step.forwards = step.tokens
        step.ends_ms[0] = end_ms if step.tokens else start_ms

    def emit_bursts(self, step: Step, start_ms: float) -> None:
        try:
            super().emit_bursts(step, start_ms)
        except Blocked as blocked:
            for r in self.ready():
                r.lease = blocked.lease  # type: ignore[attr-defined]

    def ready(self) -> list[PlainSequence]:
        found = super().ready()
        return found if self.sampler is None else [r for r in found if not living(r)]
