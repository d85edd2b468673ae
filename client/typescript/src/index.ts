/**
 * Client of the Dendra Job API.
 *
 * {@link createJobsClient} makes a client for each service. Messages are those of
 * proto/dendra/jobs/v1; `src/gen` is generated from it.
 *
 * @module
 */
import { type Client, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";

import { AlertService } from "./gen/dendra/jobs/v1/alert_service_pb.js";
import { ArchiveService } from "./gen/dendra/jobs/v1/archive_service_pb.js";
import { BookmarkService } from "./gen/dendra/jobs/v1/bookmark_service_pb.js";
import { ChangeService } from "./gen/dendra/jobs/v1/change_service_pb.js";
import { DeploymentService } from "./gen/dendra/jobs/v1/deployment_service_pb.js";
import { JobService } from "./gen/dendra/jobs/v1/job_service_pb.js";
import { JobSetService } from "./gen/dendra/jobs/v1/job_set_service_pb.js";
import { OverviewService } from "./gen/dendra/jobs/v1/overview_service_pb.js";
import { LoadService, QuarantineService } from "./gen/dendra/jobs/v1/pipeline_service_pb.js";
import { IntegrationService, ReverseSyncService, TeardownService } from "./gen/dendra/jobs/v1/platform_service_pb.js";
import { QueueService } from "./gen/dendra/jobs/v1/queue_service_pb.js";
import { RunService } from "./gen/dendra/jobs/v1/run_service_pb.js";
import { UploadService } from "./gen/dendra/jobs/v1/upload_service_pb.js";
import { WorkerService } from "./gen/dendra/jobs/v1/worker_service_pb.js";

export * from "./gen/dendra/jobs/v1/alert_service_pb.js";
export * from "./gen/dendra/jobs/v1/archive_service_pb.js";
export * from "./gen/dendra/jobs/v1/bookmark_service_pb.js";
export * from "./gen/dendra/jobs/v1/change_service_pb.js";
export * from "./gen/dendra/jobs/v1/deployment_service_pb.js";
export * from "./gen/dendra/jobs/v1/error_pb.js";
export * from "./gen/dendra/jobs/v1/job_pb.js";
export * from "./gen/dendra/jobs/v1/job_service_pb.js";
export * from "./gen/dendra/jobs/v1/job_set_service_pb.js";
export * from "./gen/dendra/jobs/v1/overview_service_pb.js";
export * from "./gen/dendra/jobs/v1/pipeline_service_pb.js";
export * from "./gen/dendra/jobs/v1/platform_service_pb.js";
export * from "./gen/dendra/jobs/v1/queue_service_pb.js";
export * from "./gen/dendra/jobs/v1/run_service_pb.js";
export * from "./gen/dendra/jobs/v1/upload_service_pb.js";
export * from "./gen/dendra/jobs/v1/worker_service_pb.js";

/** How a client reaches a server. */
export interface JobsOptions {
  /** The URL of `starter serve`, such as `https://jobs.example.org`. */
  baseUrl: string;
  /** Gives the bearer token for each call. Without it calls have none. */
  token?: () => string | Promise<string>;
}

/** A client for each service of the Job API. */
export interface JobsClient {
  alerts: Client<typeof AlertService>;
  archive: Client<typeof ArchiveService>;
  bookmarks: Client<typeof BookmarkService>;
  changes: Client<typeof ChangeService>;
  deployments: Client<typeof DeploymentService>;
  integrations: Client<typeof IntegrationService>;
  jobs: Client<typeof JobService>;
  jobSets: Client<typeof JobSetService>;
  loads: Client<typeof LoadService>;
  overview: Client<typeof OverviewService>;
  quarantine: Client<typeof QuarantineService>;
  queues: Client<typeof QueueService>;
  reverseSync: Client<typeof ReverseSyncService>;
  runs: Client<typeof RunService>;
  teardowns: Client<typeof TeardownService>;
  uploads: Client<typeof UploadService>;
  workers: Client<typeof WorkerService>;
}

/**
 * Makes a client for each service. It speaks the Connect protocol with JSON, and reads with
 * GET, so that answers can be cached. Errors are ConnectError of `@connectrpc/connect`.
 */
export function createJobsClient(options: JobsOptions): JobsClient {
  const { baseUrl, token } = options;
  const authorize: Interceptor = (next) => async (request) => {
    if (token) request.header.set("Authorization", `Bearer ${await token()}`);
    return next(request);
  };
  const transport = createConnectTransport({ baseUrl, useHttpGet: true, interceptors: [authorize] });
  return {
    alerts: createClient(AlertService, transport),
    archive: createClient(ArchiveService, transport),
    bookmarks: createClient(BookmarkService, transport),
    changes: createClient(ChangeService, transport),
    deployments: createClient(DeploymentService, transport),
    integrations: createClient(IntegrationService, transport),
    jobs: createClient(JobService, transport),
    jobSets: createClient(JobSetService, transport),
    loads: createClient(LoadService, transport),
    overview: createClient(OverviewService, transport),
    quarantine: createClient(QuarantineService, transport),
    queues: createClient(QueueService, transport),
    reverseSync: createClient(ReverseSyncService, transport),
    runs: createClient(RunService, transport),
    teardowns: createClient(TeardownService, transport),
    uploads: createClient(UploadService, transport),
    workers: createClient(WorkerService, transport),
  };
}
