/**
 * The checksums of SQLite's write-ahead log, so that damage can be done to it that the log itself
 * cannot tell (https://www.sqlite.org/fileformat2.html#checksum_algorithm).
 */

const headerBytes = 32;
const frameHeaderBytes = 24;
const bigEndianMagic = 0x377f0683;

/** Writes the checksums of the header and of every whole frame anew, as its contents are now. */
export function sealLog(log: Uint8Array, pageBytes: number): void {
  if (log.length < headerBytes) return;
  const view = new DataView(log.buffer, log.byteOffset, log.length);
  const isLittleEndian = view.getUint32(0) !== bigEndianMagic;
  let sum: Checksum = [0, 0];
  const add = (from: number, bytes: number) => {
    sum = addTo(sum, view, from, bytes, isLittleEndian);
  };
  const seal = (at: number) => {
    view.setUint32(at, sum[0]);
    view.setUint32(at + 4, sum[1]);
  };
  add(0, headerBytes - 8);
  seal(headerBytes - 8);
  const frameBytes = frameHeaderBytes + pageBytes;
  for (let at = headerBytes; at + frameBytes <= log.length; at += frameBytes) {
    add(at, 8);
    add(at + frameHeaderBytes, pageBytes);
    seal(at + 16);
  }
}

type Checksum = readonly [number, number];

function addTo(
  [one, two]: Checksum,
  view: DataView,
  from: number,
  bytes: number,
  isLittleEndian: boolean,
): Checksum {
  let [first, second] = [one, two];
  for (let at = from; at < from + bytes; at += 8) {
    first = (first + view.getUint32(at, isLittleEndian) + second) >>> 0;
    second = (second + view.getUint32(at + 4, isLittleEndian) + first) >>> 0;
  }
  return [first, second];
}
