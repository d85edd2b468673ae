// SHA-256 of FIPS 180-4, some bytes at a time: browsers hash whole texts alone, and none
// without TLS.

// The first 32 bits of the fractions of square roots, and of cube roots, of the first primes.
const { state: begin, rounds } = constants();

function constants(): { state: Int32Array; rounds: Int32Array } {
  const primes: number[] = [];
  for (let n = 2; primes.length < 64; n++) if (primes.every((p) => n % p)) primes.push(n);
  const fraction = (x: number) => ((x - Math.floor(x)) * 2 ** 32) >>> 0;
  return {
    state: Int32Array.from(primes.slice(0, 8), (p) => fraction(Math.sqrt(p))),
    rounds: Int32Array.from(primes, (p) => fraction(Math.cbrt(p))),
  };
}

export class SHA256 {
  private readonly state = begin.slice();
  private readonly words = new Int32Array(64);
  private readonly rest = new Uint8Array(64);
  private length = 0; // in bytes

  add(bytes: Uint8Array): void {
    let at = 0;
    const open = this.length % 64;
    this.length += bytes.length;
    if (open) {
      at = Math.min(64 - open, bytes.length);
      this.rest.set(bytes.subarray(0, at), open);
      if (open + at < 64) return;
      this.block(new DataView(this.rest.buffer), 0);
    }
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    for (; at + 64 <= bytes.length; at += 64) this.block(view, at);
    this.rest.set(bytes.subarray(at));
  }

  // hex ends the text, and gives its digits.
  hex(): string {
    const bits = this.length * 8;
    const padding = new Uint8Array(((119 - (this.length % 64)) % 64) + 1 + 8);
    padding[0] = 0x80;
    const view = new DataView(padding.buffer);
    view.setUint32(padding.length - 8, Math.floor(bits / 2 ** 32));
    view.setUint32(padding.length - 4, bits >>> 0);
    this.add(padding);
    return Array.from(this.state, (word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
  }

  private block(view: DataView, at: number): void {
    const w = this.words, state = this.state, k = rounds;
    for (let i = 0; i < 16; i++) w[i] = view.getInt32(at + 4 * i);
    for (let i = 16; i < 64; i++) {
      const x = w[i - 15], y = w[i - 2];
      const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
      const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    let a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6], h = state[7];
    for (let i = 0; i < 64; i++) {
      const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + k[i] + w[i]) | 0;
      const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g;
      g = f;
      f = e;
      e = (d + t1) | 0;
      d = c;
      c = b;
      b = a;
      a = (t1 + t2) | 0;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
    state[5] += f;
    state[6] += g;
    state[7] += h;
  }
}
