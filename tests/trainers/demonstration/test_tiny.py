"""The tokenizer of the tiny policy."""

from rstar2_env.trainers.demonstration.tiny import tiny_tokenizer

TEXT = "<tool_call>print(1234+5)</tool_call> how many nuts"


def test_further_words_are_a_token_each_and_every_text_comes_back_as_it_was():
    plain, wordy = tiny_tokenizer(), tiny_tokenizer([" nuts", " many", "12", "34", "print("])
    told = [wordy.decode([token]) for token in wordy.encode(TEXT, add_special_tokens=False)]
    assert told[:6] == ["<tool_call>", "print(", "12", "34", "+", "5"]
    assert told[-2:] == [" many", " nuts"]
    assert len(wordy) == len(plain) + 4, "print( is one already"
    for tokenizer in (plain, wordy):
        assert tokenizer.decode(tokenizer.encode(TEXT, add_special_tokens=False)) == TEXT
