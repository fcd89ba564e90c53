/* The script that formats messages. The page loads it with the first message, because it is as large as the page itself. */
import { formula } from "./formula";
import { markdown, mathematics } from "./parse";

window.rstar2Formatter = { markdown, mathematics, formula };
