// Shows the failing jobs of a server in a table. See README.md.
import { ConnectError } from "@connectrpc/connect";

import { createJobsClient } from "../src/index.js";

const element = <E extends HTMLElement>(id: string) => document.getElementById(id) as E;

element<HTMLFormElement>("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const state = element("state");
  const client = createJobsClient({
    baseUrl: element<HTMLInputElement>("server").value,
    token: () => element<HTMLInputElement>("token").value,
  });
  const rows: HTMLTableRowElement[] = [];
  try {
    let pageToken = "";
    do {
      const page = await client.jobs.listJobs({ filter: "status = FAILING", pageToken }, { timeoutMs: 10_000 });
      for (const job of page.jobs) {
        const row = document.createElement("tr");
        const failing = job.state?.failing;
        for (const text of [job.id, String(failing?.failures ?? 0), failing?.errorMessage ?? ""]) {
          row.insertCell().textContent = text;
        }
        rows.push(row);
      }
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    element("jobs").replaceChildren(...rows);
    state.textContent = `${rows.length} failing`;
  } catch (error) {
    state.textContent = ConnectError.from(error).rawMessage;
  }
});
