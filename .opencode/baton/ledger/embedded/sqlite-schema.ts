/** prog's schema, version 3, as in `sqlite_master` of a database that prog v0.17 created. */
import type { Database } from "bun:sqlite"
import { MADE_BY_BATON } from "../copy-paths.ts"
import { LedgerError } from "./store.ts"

const SCHEMA_VERSION = 3

const TABLES = `
CREATE TABLE IF NOT EXISTS items (
	id TEXT PRIMARY KEY,
	project TEXT NOT NULL,
	type TEXT NOT NULL,
	title TEXT NOT NULL,
	description TEXT,
	status TEXT NOT NULL DEFAULT 'open',
	priority INTEGER DEFAULT 2,
	parent_id TEXT REFERENCES items(id),
	created_at DATETIME DEFAULT CURRENT_TIMESTAMP,
	updated_at DATETIME DEFAULT CURRENT_TIMESTAMP
);
CREATE TABLE IF NOT EXISTS deps (
	item_id TEXT REFERENCES items(id),
	depends_on TEXT REFERENCES items(id),
	PRIMARY KEY (item_id, depends_on)
);
CREATE TABLE IF NOT EXISTS logs (
	id INTEGER PRIMARY KEY,
	item_id TEXT REFERENCES items(id),
	message TEXT NOT NULL,
	created_at DATETIME DEFAULT CURRENT_TIMESTAMP
);
CREATE TABLE IF NOT EXISTS projects (
	name TEXT PRIMARY KEY,
	description TEXT,
	created_at DATETIME DEFAULT CURRENT_TIMESTAMP,
	updated_at DATETIME DEFAULT CURRENT_TIMESTAMP
);
CREATE TABLE IF NOT EXISTS concepts (
	id TEXT PRIMARY KEY,
	name TEXT NOT NULL,
	project TEXT NOT NULL,
	summary TEXT,
	last_updated DATETIME DEFAULT CURRENT_TIMESTAMP,
	UNIQUE (name, project)
);
CREATE TABLE IF NOT EXISTS learnings (
	id TEXT PRIMARY KEY,
	project TEXT NOT NULL,
	created_at DATETIME DEFAULT CURRENT_TIMESTAMP,
	updated_at DATETIME DEFAULT CURRENT_TIMESTAMP,
	task_id TEXT REFERENCES items(id),
	summary TEXT NOT NULL,
	detail TEXT,
	files TEXT,
	status TEXT DEFAULT 'active'
);
CREATE TABLE IF NOT EXISTS learning_concepts (
	learning_id TEXT REFERENCES learnings(id),
	concept_id TEXT REFERENCES concepts(id),
	PRIMARY KEY (learning_id, concept_id)
);
CREATE VIRTUAL TABLE IF NOT EXISTS learnings_fts USING fts5(
	summary,
	detail,
	content='learnings',
	content_rowid='rowid'
);
CREATE TRIGGER IF NOT EXISTS learnings_ai AFTER INSERT ON learnings BEGIN
	INSERT INTO learnings_fts(rowid, summary, detail)
	VALUES (NEW.rowid, NEW.summary, NEW.detail);
END;
CREATE TRIGGER IF NOT EXISTS learnings_ad AFTER DELETE ON learnings BEGIN
	INSERT INTO learnings_fts(learnings_fts, rowid, summary, detail)
	VALUES ('delete', OLD.rowid, OLD.summary, OLD.detail);
END;
CREATE TRIGGER IF NOT EXISTS learnings_au AFTER UPDATE ON learnings BEGIN
	INSERT INTO learnings_fts(learnings_fts, rowid, summary, detail)
	VALUES ('delete', OLD.rowid, OLD.summary, OLD.detail);
	INSERT INTO learnings_fts(rowid, summary, detail)
	VALUES (NEW.rowid, NEW.summary, NEW.detail);
END;
CREATE INDEX IF NOT EXISTS idx_items_project ON items(project);
CREATE INDEX IF NOT EXISTS idx_items_status ON items(status);
CREATE INDEX IF NOT EXISTS idx_items_parent ON items(parent_id);
CREATE INDEX IF NOT EXISTS idx_logs_item ON logs(item_id);
CREATE INDEX IF NOT EXISTS idx_learnings_project ON learnings(project);
CREATE INDEX IF NOT EXISTS idx_learnings_task ON learnings(task_id);
CREATE INDEX IF NOT EXISTS idx_learnings_status ON learnings(status);
CREATE INDEX IF NOT EXISTS idx_learning_concepts_concept ON learning_concepts(concept_id);
CREATE TABLE IF NOT EXISTS labels (
	id TEXT PRIMARY KEY,
	name TEXT NOT NULL,
	project TEXT NOT NULL,
	color TEXT,
	created_at DATETIME DEFAULT CURRENT_TIMESTAMP,
	updated_at DATETIME DEFAULT CURRENT_TIMESTAMP,
	UNIQUE (name, project)
);
CREATE TABLE IF NOT EXISTS item_labels (
	item_id TEXT REFERENCES items(id),
	label_id TEXT REFERENCES labels(id),
	PRIMARY KEY (item_id, label_id)
);
CREATE INDEX IF NOT EXISTS idx_labels_project ON labels(project);
CREATE INDEX IF NOT EXISTS idx_item_labels_item ON item_labels(item_id);
CREATE INDEX IF NOT EXISTS idx_item_labels_label ON item_labels(label_id);
`

/** Only `init`, `add` and `learn` make a ledger: an empty one in the place of a lost one would look as if all was well. */
export const missingLedger = (): LedgerError =>
  new LedgerError(
    "no ledger is there. Restore it from a backup ('prog copies' lists those that are beside it), set PROG_DB to where it is, or make a new one with 'prog init'",
  )

const readNumber = (database: Database, query: string): number => {
  const row = database.query<Record<string, number>, []>(query).get()
  return Number(Object.values(row ?? {})[0] ?? 0)
}

const hasDefinitionOfDone = (database: Database): boolean =>
  readNumber(database, "SELECT COUNT(*) FROM pragma_table_info('items') WHERE name = 'definition_of_done'") > 0

const hasItems = (database: Database): boolean =>
  readNumber(database, "SELECT COUNT(*) FROM sqlite_master WHERE name = 'items'") > 0

/**
 * Creates missing tables and upgrades an older database (version 1 or 2, or the incomplete one that prog leaves if it runs
 * before `init`) to version 3. A newer version stays unchanged. Safe for several processes at once.
 *
 * @throws LedgerError for a database without a ledger, unless `mode` is "create"
 */
export const ensureSchema = (database: Database, mode: "create" | undefined): void => {
  const isCurrent = (): boolean => readNumber(database, "PRAGMA user_version") >= SCHEMA_VERSION
  if (isCurrent()) return
  if (mode !== "create" && !hasItems(database)) throw missingLedger()
  database
    .transaction(() => {
      if (isCurrent()) return
      if (!hasItems(database)) database.run(`PRAGMA application_id = ${MADE_BY_BATON}`)
      database.run(TABLES)
      if (!hasDefinitionOfDone(database)) database.run("ALTER TABLE items ADD COLUMN definition_of_done TEXT")
      database.run(`PRAGMA user_version = ${SCHEMA_VERSION}`)
    })
    .immediate()
}
