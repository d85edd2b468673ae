// A file that people choose goes to the S3 store, part by part, to URLs that the API signs. One
// that was broken off goes on: the parts that are there are not sent again.

import { byId } from "./dom";
import { SHA256 } from "./sha256";

interface Part { url: string; etag?: string }
interface Upload { bucket: string; key: string; etag?: string; uploadId?: string; partSize?: string; parts?: Part[] }

const readAtOnce = 4 << 20;
const sentAtOnce = 3;
const attempts = 4;

const box = byId("upload");
const chosen = byId<HTMLInputElement>("upload-file");
const bar = byId<HTMLProgressElement>("upload-progress");
const button = byId<HTMLButtonElement>("upload-start");
let stop: AbortController | null = null;

const value = (name: string) => byId<HTMLInputElement>(`f-spec.${name}`);

function state(text: string): void {
  byId("upload-state")!.textContent = text;
}

function progress(text: string, done: number, of: number): void {
  bar!.hidden = false;
  bar!.max = of;
  bar!.value = done;
  state(`${text}: ${Math.floor((100 * done) / of)} %`);
}

async function call(method: string, message: object, signal: AbortSignal): Promise<Upload> {
  const response = await fetch(`/dendra.jobs.v1.UploadService/${method}`, {
    method: "POST", signal, headers: { "Content-Type": "application/json", "Connect-Protocol-Version": "1" }, body: JSON.stringify(message),
  });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(answer.message ?? `the server answers ${response.status}`);
  return answer.upload;
}

async function fingerprint(file: File, signal: AbortSignal): Promise<string> {
  const hash = new SHA256();
  for (let at = 0; at < file.size; at += readAtOnce) {
    signal.throwIfAborted();
    hash.add(new Uint8Array(await file.slice(at, at + readAtOnce).arrayBuffer()));
    progress("Reading the file", Math.min(at + readAtOnce, file.size), file.size);
  }
  return hash.hex();
}

async function put(part: Part, content: Blob, signal: AbortSignal): Promise<void> {
  let response: Response;
  try {
    response = await fetch(part.url, { method: "PUT", signal, body: content });
  } catch {
    signal.throwIfAborted();
    throw new Error(`the S3 store at ${new URL(part.url).host} cannot be reached from this browser, or takes no files from pages of other sites`);
  }
  if (!response.ok) throw new Error(`the S3 store at ${new URL(part.url).host} refuses it (${response.status}): ${(await response.text()).slice(0, 200)}`);
}

async function send(file: File, upload: Upload, signal: AbortSignal): Promise<void> {
  const parts = upload.parts ?? [], size = Number(upload.partSize);
  let next = 0, done = 0;
  const one = async () => {
    while (next < parts.length) {
      const n = next++;
      for (let attempt = 1; !parts[n].etag; attempt++) {
        try {
          await put(parts[n], file.slice(n * size, (n + 1) * size), signal);
          break;
        } catch (failed) {
          signal.throwIfAborted();
          if (attempt === attempts) throw new Error(`part ${n + 1} of ${parts.length}: ${(failed as Error).message}`);
          await new Promise((wait) => setTimeout(wait, 500 * attempt ** 2));
        }
      }
      progress("Sending the file", ++done, parts.length);
    }
  };
  await Promise.all(Array.from({ length: sentAtOnce }, one));
}

// start uploads the file, and puts its place into the form.
async function start(file: File, signal: AbortSignal): Promise<void> {
  const organization = value("organization")!.value;
  const named = { organization, fileName: file.name, size: String(file.size), fingerprint: await fingerprint(file, signal) };
  let upload = await call("CreateUpload", { file: named }, signal);
  if (!upload.etag) {
    await send(file, upload, signal);
    upload = await call("CompleteUpload", { file: named, uploadId: upload.uploadId }, signal);
  }
  value("bucket")!.value = upload.bucket;
  value("key")!.value = upload.key;
  value("etag")!.value = upload.etag ?? "";
}

button?.addEventListener("click", async () => {
  if (stop) {
    stop.abort();
    return;
  }
  const file = chosen!.files?.[0];
  if (!file || !value("organization")!.value) {
    const missing = file ? value("organization")! : chosen!;
    state(file ? "Fill in the organization first." : "Choose a file first.");
    missing.focus();
    return;
  }
  stop = new AbortController();
  button.textContent = "Stop";
  try {
    await start(file, stop.signal);
    state("The file is uploaded. Its place is filled in below.");
  } catch (failed) {
    const text = stop.signal.aborted ? "It was stopped" : (failed as Error).message;
    stop.abort(); // Other parts are on their way.
    state(`The file is not uploaded: ${text}. Parts that are there are not sent again.`);
  }
  stop = null;
  button.textContent = "Upload";
  bar!.hidden = true;
});

if (box) box.hidden = false;
