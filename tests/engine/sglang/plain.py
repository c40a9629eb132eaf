"""The SGLang-style engine word for word: token by token, slot by slot, pass by pass (`spec 05`).

The twin the real scheduler is held against. It keeps lists of slot numbers and token values, does every keep
and every eviction when the specification says so, and knows nothing of stretches, lockstep or names.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from dynamo_sim.engine.gaps import GapLog
from dynamo_sim.engine.step import SignalKind, Step
from dynamo_sim.errors import SimulationError
from dynamo_sim.workload.request import Request
from tests.engine.twins import PlainStats


class PlainNode:
    def __init__(self, parent: PlainNode | None, edge: list[Any], slots: list[int], stamp: int) -> None:
        self.parent = parent
        self.edge = edge
        self.slots = slots
        self.children: dict[tuple[Any, ...], PlainNode] = {}
        self.locks = 0
        self.stamp = stamp


class PlainEvents:
    """Which blocks a router may know of, slot by slot (`spec 05, 6`); a block is the tokens up to its end."""

    def __init__(self, page: int) -> None:
        self.page = page
        self.blocks: dict[int, tuple[Any, ...]] = {}
        self.copies: Counter[tuple[Any, ...]] = Counter()
        self.log: list[tuple[str, tuple[Any, ...] | None, list[tuple[Any, ...]]]] = []

    def publish(self, tokens: list[Any], slots: list[int], first: int) -> None:
        new = []
        for end in range(first // self.page * self.page + self.page, len(tokens) + 1, self.page):
            slot = slots[end - 1]
            if slot in self.blocks:
                continue
            parent = self.blocks.get(slots[end - 1 - self.page]) if end > self.page else None
            block = (*(parent or ()), *tokens[end - self.page : end])
            self.blocks[slot] = block
            self.copies[block] += 1
            new.append((parent, block, self.copies[block]))
        while new and new[0][2] != 1:
            del new[0]
        if new:
            self.log.append(("stored", new[0][0], [block for _, block, _ in new]))

    def withdraw(self, slots: list[int]) -> None:
        gone = []
        for slot in slots:
            block = self.blocks.pop(slot, None)
            if block is not None:
                self.copies[block] -= 1
                if not self.copies[block]:
                    gone.append(block)
        if gone:
            self.log.append(("removed", None, gone))


class PlainTree:
    """The pool of slots and the prefix tree (`spec 05, 3 and 4`)."""

    def __init__(self, page: int, tokens: int) -> None:
        self.page = page
        self.events = PlainEvents(page)
        self.owned_twice = False  # slots were given back that the tree goes on to hold (`spec 05, 12`)
        self.stack = list(range(tokens - 1, -1, -1))
        self.clock = 0
        self.root = PlainNode(None, [], [], 0)

    def now(self) -> int:
        self.clock += 1
        return self.clock

    def take(self, n: int) -> list[int] | None:
        if n > len(self.stack):
            return None
        taken = self.stack[len(self.stack) - n :]
        del self.stack[len(self.stack) - n :]
        return taken

    def give(self, slots: list[int]) -> None:
        self.stack.extend(slots)

    @property
    def free(self) -> int:
        return len(self.stack)

    def nodes(self) -> list[PlainNode]:
        found, todo = [], [self.root]
        while todo:
            node = todo.pop()
            found.append(node)
            todo.extend(node.children.values())
        return found[1:]

    @property
    def evictable(self) -> int:
        return sum(len(node.edge) for node in self.nodes() if node.locks == 0)

    def child(self, node: PlainNode, tokens: list[Any], m: int) -> tuple[PlainNode | None, int]:
        key = tuple(tokens[m : m + self.page])
        child = node.children.get(key) if len(key) == self.page else None
        if child is None:
            return None, 0
        k = 0
        while k < len(child.edge) and child.edge[k : k + self.page] == tokens[m + k : m + k + self.page]:
            k += self.page
        return child, k

    def split(self, node: PlainNode, k: int) -> PlainNode:
        assert node.parent is not None
        upper = PlainNode(node.parent, node.edge[:k], node.slots[:k], node.stamp)
        upper.locks = node.locks
        node.parent.children[tuple(upper.edge[: self.page])] = upper
        node.edge, node.slots, node.parent = node.edge[k:], node.slots[k:], upper
        upper.children[tuple(node.edge[: self.page])] = node
        return upper

    def match(self, tokens: list[Any]) -> tuple[int, PlainNode]:
        now = self.now()
        node, m = self.root, 0
        while True:
            child, k = self.child(node, tokens, m)
            if child is None:
                return m, node
            m += k
            if k < len(child.edge):
                return m, self.split(child, k)
            node = child
            node.stamp = now

    def match_length(self, tokens: list[Any]) -> int:
        node, m = self.root, 0
        while True:
            child, k = self.child(node, tokens, m)
            if child is None:
                return m
            m += k
            if k < len(child.edge):
                return m
            node = child

    def insert(self, tokens: list[Any], slots: list[int]) -> None:
        whole = len(tokens) // self.page * self.page
        tokens, slots = tokens[:whole], slots[:whole]
        if not tokens:
            return
        now = self.now()
        node, m = self.root, 0
        while m < whole:
            child, k = self.child(node, tokens, m)
            if child is None:
                break
            m += k
            if k < len(child.edge):
                node = self.split(child, k)
                break
            node = child
            node.stamp = now
        if m < whole:
            node.children[tuple(tokens[m : m + self.page])] = PlainNode(
                node, tokens[m:], slots[m:], self.now()
            )

    def lock(self, node: PlainNode) -> None:
        while node.parent is not None:
            node.locks += 1
            node = node.parent

    def unlock(self, node: PlainNode) -> None:
        while node.parent is not None:
            assert node.locks > 0
            node.locks -= 1
            node = node.parent

    def evict(self, n: int) -> None:
        given: list[int] = []
        while len(given) < n:
            leaves = [node for node in self.nodes() if not node.children and node.locks == 0]
            if not leaves:
                break
            oldest = min(leaves, key=lambda node: node.stamp)
            assert oldest.parent is not None
            del oldest.parent.children[tuple(oldest.edge[: self.page])]
            self.give(oldest.slots)
            given += oldest.slots
        self.events.withdraw(given)

    def path_slots(self, node: PlainNode) -> list[int]:
        slots: list[int] = []
        while node.parent is not None:
            slots = node.slots + slots
            node = node.parent
        return slots


class PlainSequence:
    def __init__(self, request: Request) -> None:
        self.request = request
        self.prompt = request.input_tokens
        planned = request.planned_output
        self.wanted = request.output_tokens if planned is None else len(planned)
        if request.prompt is None:
            self.tokens: list[Any] = [("prompt", request.index, i) for i in range(self.prompt)]
        else:
            self.tokens = [value for value, length in request.prompt for _ in range(length)]
        self.gen = 0
        self.emitted_ms = 0.0
        self.forget()

    def forget(self) -> None:
        self.have = self.kept = self.quota = 0
        self.slots: list[int] = []
        self.last_node: PlainNode | None = None

    @property
    def left(self) -> int:
        return max(0, self.wanted - self.gen)

    @property
    def slack(self) -> int:
        return max(0, self.quota - self.have)


def spread(values: list[int]) -> float:
    mean = m2 = 0.0
    for n, value in enumerate(values, start=1):
        d = value - mean
        mean += d / n
        m2 += d * (value - mean)
    return m2 / len(values) if values else 0.0


class PlainSglang:
    """A scheduler; see `dynamo_sim.engine.scheduler.Scheduler`."""

    retries_matter = True
    lower_tiers = None

    def __init__(self, args: Any, timing: Any, interner: Any = None, sampler: Any = None) -> None:
        self.page = args.block_size
        self.total = args.num_gpu_blocks * args.block_size
        self.tree = PlainTree(self.page, self.total)
        self.timing = timing
        self.sampler = sampler
        self.seats = args.max_num_seqs or 1 << 62
        options = args.sglang
        self.lpm = options.schedule_policy == "lpm"
        self.max_prefill = options.max_prefill_tokens
        self.chunk = options.chunked_prefill_size
        self.clip = options.clip_max_new_tokens
        self.init = 0.7 * options.schedule_conservativeness
        self.least = self.init * 0.14
        self.decay = (self.init - self.least) / 600.0
        self.ratio = self.init
        self.waiting: list[PlainSequence] = []
        self.running: list[PlainSequence] = []
        self.gaps = GapLog()
        self.records_stats = True

    request_count = property(lambda self: len(self.waiting) + len(self.running))
    waiting_count = property(lambda self: len(self.waiting))
    running_count = property(lambda self: len(self.running))
    used_kv_tokens = property(lambda self: max(0, self.total - self.tree.free - self.tree.evictable))
    total_kv_tokens = property(lambda self: self.total)

    def receive(self, request: Request) -> None:
        self.waiting.append(PlainSequence(request))

    def finish(self, step: Step) -> None:
        pass

    def close(self) -> None:
        for r in (*self.running, *self.waiting):
            if r.gen:
                r.request.emitted_tokens = r.gen
                r.request.last_token_ms = r.emitted_ms

    def stuck_reason(self) -> str | None:
        return "stuck" if self.request_count else None

    def ceil(self, n: int) -> int:
        return -(-n // self.page) * self.page

    # ------------------------------------------------------------ memory (section 5)

    def begin(self, r: PlainSequence, n: int) -> int | None:
        m, node = self.tree.match(r.tokens[:n])
        taken = self.tree.take(n - m)
        if taken is None:
            return None
        r.slots = self.tree.path_slots(node) + taken
        self.tree.events.publish(r.tokens[:n], r.slots, m)
        self.tree.lock(node)
        r.last_node = node
        return m

    def extend(self, r: PlainSequence, n: int) -> int | None:
        taken = self.tree.take(n - r.have)
        if taken is None:
            return None
        r.slots += taken
        self.tree.events.publish(r.tokens[:n], r.slots, r.have)
        return r.have

    def keep(self, r: PlainSequence) -> None:
        a = r.have // self.page * self.page
        if a == 0 or a <= r.kept:
            return
        self.tree.events.publish(r.tokens[:a], r.slots, r.kept)
        self.tree.insert(r.tokens[:a], r.slots[:a])
        _, node = self.tree.match(r.tokens[:a])
        self.tree.lock(node)
        assert r.last_node is not None
        self.tree.unlock(r.last_node)
        r.last_node = node
        r.kept = a

    def end(self, r: PlainSequence) -> None:
        f = len(r.tokens) // self.page * self.page
        self.tree.give(r.slots[f:])
        self.tree.events.withdraw(r.slots[f:])
        if f > 0:
            self.tree.events.publish(r.tokens[:f], r.slots, r.kept)
            self.tree.insert(r.tokens[:f], r.slots[:f])
            _, node = self.tree.match(r.tokens[:f])
            path = self.tree.path_slots(node)
            duplicates: list[int] = []
            for first in range(0, f, self.page):
                last = first + self.page
                if path[last - 1] != r.slots[last - 1]:
                    duplicates += r.slots[first:last]
            self.tree.give(duplicates)
            self.tree.events.withdraw(duplicates)
        assert r.last_node is not None
        self.tree.unlock(r.last_node)

    def retract(self, r: PlainSequence) -> None:
        given = r.slots[r.kept :]
        self.tree.owned_twice |= any(not set(given).isdisjoint(node.slots) for node in self.tree.nodes())
        self.tree.give(given)
        self.tree.events.withdraw(given)
        assert r.last_node is not None
        self.tree.unlock(r.last_node)
        r.forget()

    # ------------------------------------------------------------ a pass (sections 7 to 10)

    def order(self) -> None:
        if not self.lpm or len(self.waiting) > 128:
            return
        seen = PlainTree(self.page, 0)
        keys: dict[PlainSequence, tuple[bool, int]] = {}
        for r in self.waiting:
            p = self.tree.match_length(r.tokens)
            marked = False
            if p <= 32:
                marked = seen.match_length(r.tokens) >= 32
                if not marked:
                    seen.insert(r.tokens, [0] * len(r.tokens))
            keys[r] = (marked, -p)
        self.waiting.sort(key=lambda r: keys[r])

    def choose(self, now: float) -> tuple[list[tuple[PlainSequence, int, int, int]], bool]:
        reserve = 0.0
        for r in self.running:
            reserve += float(min(r.left, self.clip)) * self.ratio
        tree = self.tree
        slack = sum(r.slack for r in (*self.waiting, *self.running))
        room = float(max(0, tree.free + tree.evictable - slack)) - reserve
        in_room, chunk_room = float(self.max_prefill), float(self.chunk)
        seats = max(0, self.seats - len(self.running))
        batch: list[tuple[PlainSequence, int, int, int]] = []
        while len(batch) < seats and self.waiting:
            r = self.waiting[0]
            ext = len(r.tokens) - r.have
            if ext == 0:
                break
            if ext <= self.chunk:
                c = ext
            else:
                c = min(int(chunk_room) // self.page * self.page, ext)
                if c == 0:
                    break
            charge = self.ceil(c)
            out = 0 if c < ext else min(r.left, self.clip)
            if charge + out >= room or charge > in_room or charge > chunk_room:
                break
            if tree.free < c:
                tree.evict(c - tree.free)
            reuse = self.begin(r, c) if r.have == 0 else self.extend(r, r.have + c)
            if reuse is None:
                self.ratio = self.init
                return batch, True
            del self.waiting[0]
            r.have += c
            room -= float(self.ceil(r.have) - r.quota + out)
            r.quota = self.ceil(r.have)
            in_room -= charge
            chunk_room -= charge
            r.request.note_admission(now, reuse)
            batch.append((r, c, reuse, r.have))
            if chunk_room <= 0:
                break
        return batch, False

    def start(self, now_ms: float, max_passes: int) -> Step:
        self.order()
        batch, out_of_memory = self.choose(now_ms)
        prefill_ms = 0.0
        if batch:
            n = len(batch)
            new = max(0, sum(b[3] for b in batch) // n - sum(b[2] for b in batch) // n)
            if new:
                prefill_ms = self.timing.prefill_ms(n, new)
        for r, *_ in batch:
            if r.have < len(r.tokens):
                self.keep(r)
                self.waiting.insert(0, r)
            else:
                self.running.append(r)
        decode_start = now_ms + prefill_ms
        stats = PlainStats(
            num_prefill_requests=len(batch),
            sum_prefill_tokens=sum(b[1] for b in batch),
            var_prefill_length=spread([b[0].prompt for b in batch]),
            sum_prefill_kv_tokens=sum(b[2] for b in batch),
            num_decode_requests=len(self.running),
            sum_decode_kv_tokens=sum(len(r.tokens) for r in self.running),
            var_decode_kv_tokens=spread([len(r.tokens) for r in self.running]),
            used_kv_tokens=(self.used_kv_tokens,),
        )
        step = Step(now_ms, [decode_start], True, 0, 0)
        step.admissions = len(batch)
        victims, done = self.decode(step, decode_start, stats)
        if not batch and not step.tokens and not victims and self.running and step.end_ms == now_ms:
            raise SimulationError("a running request cannot go on")
        for r in done:
            self.running.remove(r)
        for r in done:
            self.end(r)
            r.request.emitted_tokens = r.gen
            r.request.last_token_ms = r.emitted_ms
        self.waiting = victims + self.waiting
        if victims or out_of_memory:
            self.ratio = self.init
        lower = self.ratio - self.decay
        self.ratio = lower if lower > self.least else self.least
        unprefilled = [r.prompt for r in self.waiting if not r.gen]
        returned = [len(r.tokens) for r in self.waiting if r.gen]
        stats.num_queued_prefill, stats.num_queued_decode = len(unprefilled), len(returned)
        stats.sum_queued_prefill_tokens, stats.sum_queued_decode_kv_tokens = sum(unprefilled), sum(returned)
        stats.var_queued_prefill_length, stats.var_queued_decode_kv_tokens = (
            spread(unprefilled),
            spread(returned),
        )
        step.stats = stats  # type: ignore[assignment]
        step.progress = bool(batch or step.signals or step.tokens or stats.num_decode_requests)
        return step

    def decode(
        self, step: Step, start_ms: float, stats: PlainStats
    ) -> tuple[list[PlainSequence], list[PlainSequence]]:
        victims: list[PlainSequence] = []
        if not self.running:
            return victims, []
        tree = self.tree
        most = 1 if self.sampler is None else len(self.sampler.rates) + 1
        while True:
            available = tree.free + tree.evictable
            logical = max(0, available - sum(r.slack for r in self.running))
            need = sum(min(most, r.left) for r in self.running)
            grow = sum(max(0, self.ceil(len(r.tokens) + min(most, r.left)) - r.quota) for r in self.running)
            if (available >= need and logical >= grow) or len(self.running) == 1:
                break
            victim = min(self.running, key=lambda r: r.gen)
            self.running.remove(victim)
            self.retract(victim)
            victims.append(victim)
        if tree.free < need:
            tree.evict(need - tree.free)
        k = len(self.running)
        total = sum(len(r.tokens) for r in self.running)
        stats.used_kv_tokens = (self.used_kv_tokens,)
        taken = tree.take(need)
        if taken is None:
            return victims, []
        end_ms = start_ms + self.timing.decode_ms(min(total, self.total), k, total // k)
        step.ends_ms[0] = end_ms
        bursts = [
            min(1, r.left) if self.sampler is None else self.sampler.burst(r.left) for r in self.running
        ]
        slots = iter(taken)
        used = 0
        done = []
        for r, burst in zip(self.running, bursts, strict=True):
            step.forwards += burst > 0
            for _ in range(burst):
                used += 1
                if len(r.tokens) + 1 > r.quota:
                    r.quota += self.page
                planned = r.request.planned_output
                r.tokens.append(("output", r.request.index, r.gen) if planned is None else planned[r.gen])
                r.slots.append(next(slots))
                r.gen += 1
                r.have += 1
                step.tokens += 1
                self.note(r, end_ms)
                if r.gen >= r.wanted:
                    step.signals.append((r.request, SignalKind.COMPLETED))
                    done.append(r)
                    break
                if r.gen == 1:
                    step.signals.append((r.request, SignalKind.FIRST_TOKEN))
                self.keep(r)
        tree.give(taken[used:])
        return victims, done

    def note(self, r: PlainSequence, end_ms: float) -> None:
        if r.gen == 1:
            r.request.first_token_ms = end_ms
        else:
            if r.gen == 2:
                r.request.second_token_ms = end_ms
            self.gaps.add(r.emitted_ms, end_ms, 1)
        r.emitted_ms = end_ms
