/* The table of episodes as CSV. */
import { describe, expect, it } from "vitest";
import { cell } from "../src/pages/episodes/csv";

describe("a cell", () => {
  it("quotes separators, quotes and line breaks", () => {
    expect(cell('a,"b"\nc')).toBe('"a,""b""\nc"');
  });

  it("lets no spreadsheet run the text of a model", () => {
    expect(cell("=HYPERLINK(1)")).toBe("'=HYPERLINK(1)");
    expect(cell("@x")).toBe("'@x");
    expect(cell("+1,2")).toBe('"\'+1,2"');
    expect(cell(-0.5)).toBe("-0.5");
  });

  it("writes counts, and nothing for what is missing", () => {
    expect(cell({ ok: 2, timeout: 1 })).toBe("ok 2; timeout 1");
    expect(cell(null)).toBe("");
  });
});
