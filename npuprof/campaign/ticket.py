"""The hold as it is recorded."""

from __future__ import annotations

from npuprof.campaign.hold import Held, is_enforced
from npuprof.campaign.settings import Place
from npuprof.model.instants import rfc3339
from npuprof.model.record import Ticket


def ticket_of(
    place: Place, device: str, held: Held | None, reason: str, asked: float, granted: float, now: float
) -> Ticket:
    """Instants in seconds since the epoch; `held` is None where the site's own command holds the device.

    `now` is when it is written down: under the hold, so that the next one's window never overlaps this one's.
    """
    through = f"command {place.hold_command[0]}" if held is None else "npuprof"
    return Ticket(
        device=device,
        asked=rfc3339(asked),
        granted=rfc3339(granted),
        released=rfc3339(now),
        waited_s=round(granted - asked, 3),
        reason=reason,
        enforced=is_enforced(place.hold_directory, device),
        through="an enclosing npuprof hold" if held is not None and held.inherited else through,
    )
