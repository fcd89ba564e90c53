"""Orders and replies are unpacked as they were packed, with texts of any length."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rstar2_env.sandbox.inside import orders
from rstar2_env.sandbox.inside.orders import Order, OrderReply, pack_order, pack_reply, unpack_order, unpack_reply

WORDS, LONGS = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)


@given(
    st.builds(
        Order,
        kind=st.sampled_from([orders.FORK, orders.KILL, orders.WATCH, orders.HALT, orders.RESUME, orders.DEPRIORITIZE]),
        number=WORDS,
        slot=WORDS,
        value=LONGS,
        files=LONGS,
        pipes=WORDS,
        workdir=st.text(st.characters(codec="utf-8"), max_size=100),
    )
)
def test_an_order_comes_out_as_it_went_in(order: Order) -> None:
    assert unpack_order(pack_order(*order)) == order


@given(
    number=WORDS,
    status=st.integers(-(2**31), 2**31 - 1),
    cpu_us=st.integers(0, 10**12),
    peak_kb=LONGS,
    text=st.text(st.characters(codec="utf-8"), max_size=100),
)
def test_a_reply_comes_out_as_it_went_in(number: int, status: int, cpu_us: int, peak_kb: int, text: str) -> None:
    packed = pack_reply(orders.ENDED, number, status, cpu_us, peak_kb, text)
    assert unpack_reply(packed) == OrderReply(orders.ENDED, number, status, cpu_us / 1e6, peak_kb, text)


@pytest.mark.parametrize("letter", ["x", "é", "\N{SNOWMAN}"])
def test_a_reply_with_a_long_text_fits_into_a_message(letter: str) -> None:
    packed = pack_reply(orders.FAILED, text=letter * orders.MAX_BYTES)
    assert len(packed) <= orders.MAX_BYTES
    said = unpack_reply(packed).text
    assert len(said) > orders.MAX_BYTES // 4
    assert set(said) <= {letter, "\N{REPLACEMENT CHARACTER}"}, "a letter that was cut in two is replaced"


def test_no_two_orders_and_no_two_replies_share_a_number() -> None:
    sent = [orders.FORK, orders.KILL, orders.WATCH, orders.PING, orders.INTERRUPT, orders.HALT, orders.RESUME]
    sent += [orders.DEPRIORITIZE]
    told = [orders.READY, orders.FAILED, orders.PONG, orders.ENDED, orders.BROKEN, orders.GONE]
    told += [orders.FORK_FAILED, orders.OVERDRAWN, orders.INTERRUPTED, orders.DEPRIORITIZED]
    assert len(set(sent)) == len(sent)
    assert len(set(told)) == len(told)
