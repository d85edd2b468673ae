// The script of the status page. The page works without it; with it, outcomes have colors,
// filters need no request, changes come by themselves, and harm is asked about first.

import "./actions";
import { keepStop, watchCells } from "./cells";
import { drawCharts } from "./charts";
import "./columns";
import "./details";
import { applyFilter } from "./filter";
import "./keys";
import { connect, showFrozen } from "./live";
import { watchOutcomes } from "./outcomes";
import { toTheEnd } from "./run";
import "./silence";
import "./timeline";
import "./times";
import "./upload";

document.documentElement.classList.add("js");
watchOutcomes(document);
watchCells(document);
applyFilter();
keepStop();
showFrozen();
toTheEnd();
void drawCharts();
connect();
