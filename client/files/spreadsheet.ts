/**
 * What a spreadsheet does to the cells of a CSV file that it opens and saves, with nothing edited:
 * `007` becomes `7`, `1E5` becomes `100000`, `=1+1` becomes `2`, line ends change, tabs get lost.
 */

/** Texts with the same key differ only by what a spreadsheet does to numbers, line ends and tabs. */
export function cellKey(text: string): string {
  const plain = text.replaceAll("\t", "").replace(/\r\n?/g, "\n");
  const value = readValue(plain.trim());
  // No text has a U+0000, so no text has the key of a number.
  return value === undefined ? plain : `\0${value}`;
}

/** Whether a spreadsheet writes `after` for `before`, so that nobody has to have edited it. */
export function isSameCell(before: string, after: string): boolean {
  if (before === after || cellKey(before) === cellKey(after)) return true;
  return dayKeys(before).some((day) => dayKeysOfDate(after).includes(day));
}

const words = /\p{L}+/gu;
const wordOfDate =
  /^(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?|am|pm|e)$/i;

/**
 * Whether a spreadsheet may take the text for a number, a date or a formula, and write something
 * else.
 */
export function isComputable(text: string): boolean {
  if (/^\s*[=+\-@]/.test(text) || /^(?:true|false)$/i.test(text)) return true;
  return /\d/.test(text) && (text.match(words) ?? []).every((word) => wordOfDate.test(word));
}

/** What a cell stands for; absent if it's a text. */
function readValue(text: string): string | undefined {
  const percent = /^(.*\d)\s*%$/.exec(text)?.[1];
  if (percent !== undefined) {
    const number = readNumber(percent);
    return number && `${number}%`;
  }
  return readNumber(text) ?? readTime(text) ?? readSum(text);
}

/** Thousands may be separated by commas. Any other comma is a decimal one. */
const groupedNumber = /^[+-]?\d{1,3}(?:,\d{3})+(?:\.\d*)?$/;
const decimalComma = /^[+-]?\d*,\d*(?:e[+-]?\d+)?$/i;
const number = /^([+-]?)(\d*)(?:\.(\d*))?(?:e([+-]?\d{1,4}))?$/i;

/** All its digits, however it's written: `1.10` and `01.1` are both `11e-1`. */
function readNumber(text: string): string | undefined {
  let plain = text;
  if (groupedNumber.test(text)) plain = text.replaceAll(",", "");
  else if (decimalComma.test(text)) plain = text.replace(",", ".");
  const parts = number.exec(plain);
  if (!parts || !/^[+-]?\.?\d/.test(plain)) return undefined;
  const [, sign, whole = "", fraction = "", exponentText = "0"] = parts;
  const digits = (whole + fraction).replace(/^0+/, "");
  if (digits === "") return "0";
  let end = digits.length;
  while (digits[end - 1] === "0") end--;
  const exponent = Number(exponentText) - fraction.length + digits.length - end;
  return `${sign === "-" ? "-" : ""}${digits.slice(0, end)}e${exponent}`;
}

const noonHours = 12;

/** In seconds: `12:30`, `12:30:00` and `12:30:00 PM` are the same. */
function readTime(text: string): string | undefined {
  const parts = /^(\d{1,4}):(\d{1,2})(?::(\d{1,2}))?(?:\s*([ap])m)?$/i.exec(text);
  if (!parts) return undefined;
  const [, hoursText, minutes, seconds = "0", half] = parts;
  let hours = Number(hoursText);
  if (half) hours = (hours % noonHours) + (/p/i.test(half) ? noonHours : 0);
  return `${(hours * 60 + Number(minutes)) * 60 + Number(seconds)}s`;
}

/** Of formulas only sums: more can't be known without the sheet. */
function readSum(text: string): string | undefined {
  if (!/^=\s*[+-]?\d+(?:\.\d+)?(?:\s*[+-]\s*\d+(?:\.\d+)?)*$/.test(text)) return undefined;
  const terms = text.replaceAll(/[=\s]/g, "").match(/[+-]?[\d.]+/g) ?? [];
  const sum = terms.reduce((total, term) => total + Number(term), 0);
  // As many digits as a spreadsheet shows.
  return readNumber(String(Number(sum.toPrecision(15))));
}

/** The key of a day and a month, which spreadsheets give a year: `1/2` becomes `01/02/2026`. */
export function dayKeys(text: string): string[] {
  return /^\d{1,2}([/.-])\d{1,2}\1?$/.test(text) ? [toDayKey(toNumbers(text))] : [];
}

/** The keys of the days that a spreadsheet may have made this date of. Its year is first or last. */
export function dayKeysOfDate(text: string): string[] {
  if (!/^\d+[/.-]\d+[/.-]\d+$/.test(text)) return [];
  const numbers = toNumbers(text);
  return [toDayKey(numbers.slice(0, 2)), toDayKey(numbers.slice(1))];
}

/** No text and no number has such a key. */
function toDayKey(numbers: readonly number[]): string {
  return `\0day ${numbers.join("/")}`;
}

function toNumbers(text: string): number[] {
  return (text.match(/\d+/g) ?? []).map(Number);
}
