import { expect, it } from "vitest";
import { address, path } from "../src/data/address";
import { ago, count, number, percent, points, seconds, short, signed, visible, way } from "../src/format";
import { href, match, parseHash } from "../src/shell/router";

it("writes numbers as a reader takes them in", () => {
  expect([0, 0.5, 0.012345, 1.23e-7, 12.34, 123.456, 12345, -2].map((value) => number(value))).toEqual([
    "0", "0.5", "0.0123", "1.23e-7", "12.3", "123", "12,345", "-2",
  ]);
  expect([null, undefined, Number.NaN, Infinity].map((value) => number(value))).toEqual(["–", "–", "–", "–"]);
  expect(count(1234567)).toBe("1,234,567");
  expect([0, 0.123456, 1, 0.9999].map((value) => percent(value))).toEqual(["0%", "12.3%", "100%", "100%"]);
  expect([signed(0.25), signed(-0.25), signed(0)]).toEqual(["+0.25", "−0.25", "0"]);
  expect([0.1134, -0.01, 0].map((value) => signed(value, points))).toEqual(["+11.3 points", "−1 point", "0 points"]);
  expect([0.0004, -0.0004].map((value) => signed(value, points))).toEqual(["0 points", "0 points"]);
  expect([0.0004, -0.0004, 0.0006, -0.0006].map(way)).toEqual([0, 0, 1, -1]);
});

it("writes times in the unit that suits them", () => {
  expect([0.0123, 2.345, 99.99, 250, 3600, 12000].map((value) => seconds(value))).toEqual([
    "12.3 ms", "2.35 s", "1 min 40 s", "4 min 10 s", "1 h 0 min", "3 h 20 min",
  ]);
  const now = Date.parse("2026-01-02T00:00:00Z");
  expect(["2026-01-01T23:59:30Z", "2026-01-01T23:50:00Z", "2026-01-01T01:00:00Z", "2025-12-31T00:00:00Z", "x"].map((time) => ago(time, now))).toEqual([
    "just now", "10 min ago", "23 h ago", "2 days ago", "–",
  ]);
});

it("makes control characters visible, and leaves text of every language alone", () => {
  expect(visible("a\u202eb\u0007\u007f\r\nc\td")).toBe("a⟨U+202E⟩b␇␡\nc\td");
  expect(visible("é 漢字 שלום 👩‍🔬")).toBe("é 漢字 שלום 👩‍🔬");
  expect(short("abcdef", 4)).toBe("abc…");
});

it("escapes addresses, and leaves words without a value out", () => {
  expect(path("runs", "r", "problems", "a/b?c")).toBe("api/runs/r/problems/a%2Fb%3Fc");
  expect(address("api/runs", { q: "a b", sort: "", split: undefined })).toBe("api/runs?q=a+b");
});

it("reads and writes the addresses of views", () => {
  const to = href(["runs", "r", "problems", "a/b"], { q: "x&y", sort: null });
  expect(to).toBe("#/runs/r/problems/a%2Fb?q=x%26y");
  expect(parseHash(to)).toEqual({ segments: ["runs", "r", "problems", "a/b"], query: { q: "x&y" } });
  expect(parseHash("#/runs/%zz").segments).toEqual(["runs", "%zz"]);
  expect(match("runs/:run/groups/:step/:group", ["runs", "r", "groups", "3", "4"])).toEqual({ run: "r", step: "3", group: "4" });
  expect(match("runs/:run", ["overview", "r"])).toBeNull();
  expect(match("runs/:run", ["runs", "r", "episodes"])).toBeNull();
});
