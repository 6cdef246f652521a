"""PyTorch's profiler, for as long as backward passes are under way.

It is the only one who sees nodes run at a cost that leaves the pass what it is: hooks
on each node cost a hundred times as much.

Note [One profiler]
~~~~~~~~~~~~~~~~~~~
PyTorch has one profiler in a process. A second one, begun on another thread, ends in a
crash; so does enabling it without preparing it first, and starting or stopping it while
functions of a backward run on another thread. So the first pass that begins starts it,
passes that begin meanwhile are seen by it too, on whatever thread, and the last one
that ends stops it and reads what all of them did. All passes are counted, also those
that nobody listens to: while one of them runs that began before, the profiler is not
started. Where a version's profiler sees only one thread, passes of others are not seen
meanwhile.

A program may run a profiler of its own. Then it has it for itself: its passes are not
seen, and their trace says so. One that begins inside of a pass stops ours first; one
that begins beside passes on other threads waits until these are over.
"""

import threading
from typing import Any, Final

from gradviz.locks import SafeRLock
from gradviz.pytorch.reconstruction.clocks import offset_ns
from gradviz.pytorch.reconstruction.session import Session, runs_of
from gradviz.pytorch.reconstruction.watched_pass import WatchedPass
from gradviz.pytorch.torch_names import PyTorch
from gradviz.pytorch.watching.counted_passes import CountedPasses, UncountedPasses
from gradviz.pytorch.watching.devices import Devices
from gradviz.pytorch.watching.other_profilers import OtherProfilers

#: So long the program's profiler waits for passes of other threads.
_PATIENCE_S: Final = 10.0

#: Reason why passes are not seen.
_ANOTHER: Final = "another profiler runs"
_AT_WORK: Final = "it began inside of what gradviz does"
_OTHER_BEGAN: Final = "the program began a profiler"
_INTERRUPTED: Final = "what gradviz does was interrupted"


class Profile:
    """Counts the running passes, and sees those with listeners. Any thread.

    Args:
        names: Of PyTorch.
        other_profilers: The program's own profilers.
        uncounted: Passes that were not counted.
    """

    def __init__(
        self,
        names: PyTorch,
        other_profilers: OtherProfilers,
        uncounted: UncountedPasses,
    ) -> None:
        self._names = names
        self._other_profilers = other_profilers
        self._uncounted = uncounted
        # A finalizer, or the handler of a signal, may run a pass of its own inside of
        # what is done under the lock: `_is_busy` says so. Whoever takes it does so by
        # `with` alone, for in code of Python's round that an interrupt may keep it.
        self._lock = SafeRLock()
        self._changed = threading.Condition(self._lock)
        self._passes = CountedPasses()  # guarded by it, as is all below
        self._is_on = self._is_busy = self._is_warm = False
        self._is_awaited = self._is_taken = self._hears_collectives = False
        self._devices = Devices(names.torch, names.config)
        self._sees_devices = False
        self._thread = 0
        self._offset_ns = 0

    @property
    def is_idle(self) -> bool:
        """True if no pass is under way, as far as they are counted."""
        return not self._passes.seen and not self._passes.unseen

    def warm_up(self) -> None:
        """Let it begin once, if nothing prevents that: the first time takes a while.

        On the thread that imported torch, if that can be chosen: on others it says
        something on stderr.
        """
        with self._lock:
            if self._is_busy or self._is_warm or self._prevented():
                return
            try:
                self._is_busy = True
                self._start()
                self._stop()
            finally:
                self._is_busy = False

    def renewed(self, uncounted: UncountedPasses) -> "Profile":
        """Return a replacement with a free lock, after a fork."""
        self._lock = SafeRLock()
        self._changed = threading.Condition(self._lock)
        other = Profile(self._names, self._other_profilers, uncounted)
        other._is_warm = True
        return other

    def begin(self, one: WatchedPass, *, is_heard: bool) -> None:
        """A pass begins on this thread; see Note [One profiler].

        Args:
            one: The pass, which is told whether it is seen.
            is_heard: True if somebody wants to know what it does.
        """
        with self._lock:
            if self._is_awaited and not self._passes.are_around():
                # Stopping it beside this one, which it sees, might crash.
                self._changed.wait_for(lambda: not self._is_awaited, _PATIENCE_S)
            if self._is_busy:
                self._passes.begin(one, _AT_WORK)
                return
            try:
                self._is_busy = True
                self._passes.begin(one, self._why_unseen(is_heard=is_heard))
            finally:
                self._is_busy = False

    def end(self, one: WatchedPass) -> Session | None:
        """End a pass, which may have been interrupted before it was counted.

        Returns:
            The session of all passes since the first one began, if this was the last;
            else None.
        """
        passes: list[WatchedPass] = []
        try:
            with self._lock:
                if self._is_busy:
                    self._passes.end(one, is_on=self._is_on)
                    return None
                try:
                    self._is_busy = True
                    self._passes.end(one, is_on=self._is_on)
                    self._changed.notify_all()
                    if not self._is_on or self._passes.seen:
                        return None
                    hears_collectives = self._hears_collectives
                    sees_devices = self._sees_devices
                    offset, seen = self._offset_ns, self._stop()
                    passes = self._passes.take_ended()
                finally:
                    self._is_busy = False
            knows = self._names.knows_threads
            events, devices = [] if seen is None else seen.events(), None
            if sees_devices:
                events, devices = _split_records(events)
            if not hears_collectives:
                runs = runs_of(events, knows_threads=knows)
                return Session(passes, runs, offset, devices=devices)
            # Loaded where ranks have met.
            from gradviz.pytorch.reconstruction.seen_collectives import (  # noqa: PLC0415
                collectives_of,
            )

            user = self._names.user_scope
            runs = runs_of(
                (one for one in events if one.scope() != user), knows_threads=knows
            )
            collectives = collectives_of(one for one in events if one.scope() == user)
            return Session(passes, runs, offset, collectives, devices)
        except BaseException:  # an interrupt
            if not self._is_on:
                passes += self._passes.take_ended()
            self._passes.lose(passes, _INTERRUPTED)
            raise

    def take_lost(self) -> list[WatchedPass]:
        """Return the ended passes with lost events, and forget them."""
        return self._passes.take_lost()

    def make_way(self) -> None:
        """Let the program's profiler begin, on this thread.

        Ours must not be stopped while other threads are in passes that it sees: these
        are waited for, and no other becomes one. If it has to be stopped nevertheless,
        what it had seen is lost.
        """
        with self._lock:
            self._names.log.leave_to_program()
            if self._is_busy:
                return
            self._is_awaited = True
            try:
                self._changed.wait_for(self._passes.are_only_around, _PATIENCE_S)
            finally:
                self._is_awaited = False
                self._changed.notify_all()
            if not self._is_on:
                return
            if not self._passes.are_only_around():
                # They may wait for this thread. The program's profiler stops ours now,
                # as it does; the program may crash of it, as where it begins two.
                self._is_taken = True
                return
            self._passes.hide(_OTHER_BEGAN)
            self._stop()

    def _why_unseen(self, *, is_heard: bool) -> str:
        """Return why a new pass will be unseen; empty if it is seen, and runs."""
        if self._is_on:
            if self._is_taken:
                return _ANOTHER
            if self._thread != threading.get_ident() and (
                not self._names.sees_all_threads
            ):
                return "the profiler of this version of PyTorch sees one thread only"
            return ""
        if not is_heard:
            return "nobody listens"
        if not (why := self._prevented()):
            self._start()
        return why

    def _prevented(self) -> str:
        """Return why the profiler must not be started now; empty if it may."""
        if self._other_profilers.are_active or self._names.is_enabled():
            return _ANOTHER
        if self._passes.unseen or self._uncounted.exist():
            return "a pass that nobody listened to was under way"
        return ""

    def _start(self) -> None:
        names, devices = self._names, self._devices
        config, activities = names.config(), names.activities
        self._sees_devices = devices.are_in_use()
        if self._sees_devices:
            config, activities = devices.config(), devices.activities(activities)
        with names.log.silenced():
            names.prepare(config, activities)
            self._is_on = True
        with names.log.silenced():
            scopes = names.scopes
            self._hears_collectives = names.is_distributed()
            if self._hears_collectives:  # they are in the scope of the user's records
                scopes = scopes | names.user_scopes
            names.enable(config, activities, scopes)
        self._is_warm = True
        self._thread = threading.get_ident()
        self._offset_ns = offset_ns()

    def _stop(self) -> Any:  # noqa: ANN401 - PyTorch's
        """Stop the profiler; return its records, None if the program stopped it."""
        if self._sees_devices:
            self._devices.wait()
        with self._names.log.silenced():
            try:
                return self._names.disable()
            except RuntimeError:
                return None
            finally:
                self._is_on = self._is_taken = False


def _split_records(events: Any) -> Any:  # noqa: ANN401 - PyTorch's
    """Split off device records; programs without any do not load the module."""
    from gradviz.pytorch.reconstruction import device_records  # noqa: PLC0415

    return device_records.split_records(events)
