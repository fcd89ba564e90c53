"""The sentences of ``word_arithmetic``, by split and kind of event.

In ``[one|another]``, one of the alternatives is drawn for each problem. The sentences of the training splits have many
alternatives, so that a policy has to read the verb instead of remembering the sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

NAMES = ("Ava", "Omar", "Lena", "Raj", "Ines", "Paul", "Yuki", "Nora", "Hugo", "Zoe", "Ivan", "Maya")
ITEMS = (
    *("apples", "books", "bricks", "buttons", "cards", "coins", "eggs", "letters", "marbles", "pencils", "plates"),
    *("seeds", "shells", "stamps", "stickers", "tickets", "tiles", "toys"),
)

SENTENCES: Mapping[str, Mapping[str, Sequence[str]]] = {
    "train": {
        "open": (
            "{name} [has|owns|holds|possesses] {a} {items}.",
            "[At first|In the beginning|In the morning|One day|Last year] {name} [has|owns|counts] {a} {items}.",
            "{name} [starts|begins|sets out] with {a} {items}.",
            "There are {a} {items} [in|inside] {name}'s [box|bag|basket|room|garage].",
            "[A shelf|A cupboard|A chest|A jar] holds {a} {items} that belong to {name}.",
            "{name} [collected|gathered|bought|made] {a} {items}.",
            "{a} {items} are [on|under|next to] {name}'s [desk|bed|bench].",
            "{name}'s [stock|supply|heap] [is|has|counts] {a} {items}.",
        ),
        "open_packs": (
            "{name} has {a} [boxes|bags|jars|bundles] with {b} {items} each.",
            "{name} fills {a} [bags|baskets|boxes], and each [one|of them] holds {b} {items}.",
            "There are {a} [rows|piles|heaps|lines] of {b} {items} in {name}'s [room|shop|garden].",
            "{name} [owns|bought|has] {a} packs of {b} {items}.",
            "{name} [bought|found|got] {a} crates with {b} {items} in every crate.",
            "Each of {name}'s {a} [chests|shelves|cases] holds {b} {items}.",
            "{b} {items} are in each of {a} [pots|jars|baskets] that {name} owns.",
        ),
        "gain": (
            "[|Then |Soon ]{name} [gets|buys|finds|wins|makes|collects] {a} more.",
            "[Then|After lunch|At noon] {name} [buys|makes|finds|gathers|gets] {a} [more|other|new|further] {items}.",
            "[A friend|A teacher|A stranger|Grandmother|The club] [gives|hands|brings|lends] {name} {a} {items}.",
            "After that, {a} {items} are [added|put in|brought in|found].",
            "{name} [wins|gains|is given|is handed] {a} {items} [in a game|at a party|at the market|as a present].",
            "Another {a} {items} [arrive|come in|turn up|appear].",
            "{name} picks up {a} more {items} on the way.",
            "[A brother|A cousin|The baker|A guest] [adds|leaves|brings|passes on] {a} {items} [for|to] {name}.",
            "The [pile|number|heap] [grows|rises|goes up] by {a}.",
            "{a} [more|extra|new] {items} are [bought|made|found|given][| that day| in the evening].",
        ),
        "loss": (
            "[|Then |Soon ]{name} [gives away|sells|loses|breaks|eats|burns] {a} of them.",
            "[Then|After lunch|At noon|A day after that] {name} [sells|loses|gives away|spends|uses] {a} {items}.",
            "{a} {items} [get lost|go missing|are taken|break|vanish|are eaten].",
            "{name} [uses|needs|spends|removes|tears up] {a} of the {items}.",
            "{name} [throws away|leaves behind|gets rid of|clears out] {a} [broken|old|bad] {items}.",
            "[A visitor|A thief|A dog|A teacher|A child] [takes|steals|hides|breaks|carries off] {a} {items}.",
            "{name} puts {a} {items} aside [for later|for a friend] and no longer counts them.",
            "{a} of the {items} are [stolen|sold|gone|burnt|thrown out].",
            "{name} [hands over|passes|lends|leaves|brings] {a} {items} to [a friend|a cousin|the club|a shop].",
            "The [pile|number|heap] [shrinks|falls|goes down|sinks] by {a}.",
            "{name} [trips|slips|stumbles] and {a} {items} fall into [a well|a lake|the sea|a drain].",
        ),
        "packs": (
            "{name} [buys|gets|finds|makes] {a} [packs|bags|boxes|sets] of {b} {items}.",
            "Then {a} [boxes|crates|bags|chests] [arrive|come in], each with {b} {items}.",
            "{a} [friends|guests|children|cousins] [bring|give {name}|add] {b} {items} each.",
            "{name} adds {a} [bags|piles|jars] of {b} {items}.",
            "[On each of {a} days|Every day for {a} days] {name} [gets|finds|makes|wins] {b} more {items}.",
            "[A train|A van|A ship] brings {a} [boxes|bags|crates], and [each|every one] [holds|has] {b} {items}.",
            "{name} [wins|gets|collects] {b} {items} [an hour for {a} hours|a month for {a} months].",
            "[Each|Every one] of {a} [guests|teachers|friends] [gives|hands] {name} {b} {items}.",
        ),
        "gifts": (
            "{name} gives {b} {items} to each of {a} [friends|guests|children|cousins].",
            "{name} [sells|gives away|loses|hands out] {a} [bags|boxes|packs|bundles] of {b} {items}.",
            "For {a} days {name} [uses|loses|sells|eats] {b} {items} a day.",
            "{a} [children|visitors|guests|friends] take {b} {items} each.",
            "[Each|Every one] of {a} [thieves|visitors|dogs|children] [takes|steals|breaks|carries off] {b} {items}.",
            "{name} [packs|fills] {a} [bags|boxes] with {b} {items} each and [gives|throws] them away.",
            "{name} [sells|loses|spends] {b} {items} [an hour for {a} hours|a month for {a} months].",
        ),
        "times": (
            "Then the number of {items} becomes {a} times as large.",
            "{name} now has {a} times as many [|{items} ]as before.",
            "By [trading|magic|luck|hard work], {name} multiplies the {items} by {a}.",
            "The [pile|heap|stock|supply] [grows|swells|rises] to {a} times its size.",
            "[A machine copies|A printer copies|Magic copies] the {items} until there are {a} for each one.",
            "The number of {items} is multiplied by {a}.",
            "Each of the {items} is [replaced by|turned into|swapped for] {a} new ones.",
        ),
        "percent": (
            "{name} [sells|loses|uses|eats|burns] {a}% of the {items}.",
            "{a}% of [them|the {items}] [get lost|are stolen|go missing|break].",
            "{name} gives {a}% of the {items} to [a school|a friend|the club|a shop].",
            "{name} [uses|sells|spends|throws away] {a} percent of [the {items}|them].",
            "[A fire|A storm|Rain|A thief] [destroys|takes|spoils|costs {name}] {a}% of the {items}.",
        ),
        "share": (
            "{name} shares all of them equally among {a} [people|players], {name} among them, and keeps one share.",
            "All {items} are divided into {a} equal [piles|heaps|parts|stacks], and {name} keeps one[| of them].",
            "{name} [splits|spreads|divides] the {items} evenly between {a} [boxes|bags] and takes one[| of them].",
            "The {items} are [dealt|given|handed] out to {a} [players|friends] in equal parts. {name} gets one part.",
            "{a} [friends|heirs], {name} among them, split the {items} evenly; [count|look at] the part of {name}.",
            "The {items} are packed into {a} [boxes|cases|chests] with the same number in each; {name} keeps one.",
        ),
        "ask": (
            "How many {items} does {name} have [now|in the end|then]?",
            "How many {items} are there [in the end|at last|now]?",
            "How many {items} is that?",
            "What is the number of {items} [at the end|now]?",
            "How many {items} [are left|remain]?",
        ),
    },
    "test": {
        "open": (
            "{name}'s collection consists of {a} {items}.",
            "On Monday {a} {items} belonged to {name}.",
            "{name} keeps {a} {items} at home.",
        ),
        "open_packs": (
            "{name} stores {b} {items} in each of {a} drawers.",
            "{a} trays lie on {name}'s table, each with {b} {items} on it.",
        ),
        "gain": (
            "Later, {name} receives {a} additional {items}.",
            "An uncle sends {a} {items} to {name}.",
            "The collection increases by {a} {items}.",
        ),
        "loss": (
            "Unfortunately, {name} drops {a} of the {items} into a river.",
            "{name} returns {a} {items} to their owner.",
            "The collection decreases by {a} {items}.",
        ),
        "packs": (
            "A truck delivers {a} cartons, and every carton contains {b} {items}.",
            "{name} earns {b} {items} in each of {a} weeks.",
        ),
        "gifts": (
            "Each of {a} neighbours borrows {b} {items} and does not bring them back.",
            "{name} mails {a} parcels with {b} {items} inside each.",
        ),
        "times": (
            "Over the year the collection grows by a factor of {a}.",
            "Soon there are {a} times as many {items}.",
        ),
        "percent": (
            "A flood ruins {a}% of the {items}.",
            "{name} donates {a} percent of the collection.",
        ),
        "share": (
            "{name} and the others, {a} persons in total, each receive the same number, and only {name}'s part counts.",
            "A machine sorts the {items} into {a} equally full bins, of which {name} gets one.",
        ),
        "ask": (
            "What is the final count of {items}?",
            "With how many {items} does {name} end up?",
        ),
    },
}
"""Sentences by split and kind of event; ``validation`` has the same sentences as ``train``."""
