import { excludes, make, NONE, type Rules } from "./signals.ts"

const CODE =
  "(?:(?:branch|funktions|methoden|klassen|variablen|datei|typ|test|modul|komponenten|paket|spalten|tabellen)-?namen?|\\S*commit\\S*|\\S*branch(?:es|e)?|pull[- ]requests?|prs?|\\S*tests?|testdateien|\\S*funktionen|\\S*methoden|\\S*klassen|\\S*variablen?|\\S*importe?|\\S*imports|\\S*exports?|\\S*module?n?|\\S*pakete?|\\S*abhangigkeit(?:en)?|dependenc(?:y|ies)|packages|\\S*konstanten|interfaces|hooks|\\S*migration(?:en)?|docstrings|\\S*kommentare?n?|typen|\\S*(?:abfrage|query|queries)n?|sql|\\S*komponenten?|changelog|readmes?|\\S*code|fixtures|mocks|linter|formatter|logger|console\\.log|\\S*dateien|emojis?|semikolons?|tabs|leerzeichen|einruckung|inline-?styles?|magische \\S+|abkurzungen|todos?|typescript|javascript|python|markdown\\S*|any|secrets|skripte?|bezeichner|snapshots?)"
const ALWAYS = "(?:immer|stets|grundsatzlich|ausnahmslos)"
const NEVER = "(?:nie|niemals|nirgends)"
/** Imperatives of work on code. */
const DO =
  "(?:antworte?|schreibe?|verwende?|benutze?|nutze?|nimm|losche?|committe?|pushe?|merge|rebase|squashe?|teste?|frage?|halte?|mache?|fuhre?|fuge?|starte?|andere?|erstelle?|lege?|setze?|lasse?|lass|gib|prufe?|formatiere?|importiere?|dokumentiere?|erklare?|lies|baue?|vermeide?|achte?|rufe?|packe?|speichere?|behalte?|sortiere?|benenne?|nenne?|kommentiere?|mocke?|logge?|wirf|fange?|deploye?|installiere?|aktualisiere?|arbeite?|denke?|verzichte?|fasse?|ruhre?|bleibe?|folge?|trenne?|validiere?|exportiere?|kapsele?|ersetze?|orientiere?|zeige? mir|sag mir|kopiere?|entferne?|editiere?|bearbeite?)"
const HERE =
  "(?:hier|bei uns|in (?:diesem|dem|unserem) (?:projekt|repo\\S*|code\\S*|team|paket)|im (?:projekt|repo\\S*|team|code))"
const NO = "(?:nein|nee|no|ne|falsch|stopp?|halt|moment)"
const UNASKED =
  "(?:ohne (?:\\S+ )?(?:ruckfrage|nachfrage|zu fragen|nachzufragen|absprache|erlaubnis|zustimmung|freigabe|review|mich)|bevor ich|(?:ausser|es sei denn),? (?:wenn )?ich|nur,? wenn ich|solange ich)"
/** A choice by its name, and not "the other one". */
const NAMED = "(?!das so|es so|(?:den|die|das|dem) (?:ander|erst|zweit|dritt|letzt|ob|unt|link|recht|alt|neu)\\S*)"

const CORRECTIONS = make(
  "correction",
  `^${NO}[ ,.!:;–—-]+(?!noch nicht|nicht (?:notig|jetzt|wirklich|schlimm|ganz))(?:bitte )?${NAMED}(?:\\S+ ){1,8}?(?:statt|anstatt|anstelle|sondern|nicht|kein\\w*|und nie) \\S`,
  `^${NO}[ ,.!:;–—-]+(?:bitte )?(?:lieber|besser|${ALWAYS}|${NEVER}|nur|wir \\S+|keine?n?) \\S+ \\S`,
  `^${NO}[ ,.!:;–—-]+(?:bitte )?${DO} ${NAMED}(?:doch |lieber |bitte |besser |hier |dafur )*${NAMED}(?!es\\b|nochmal|noch)\\S+ \\S`,
  `^${NO}[ ,.!:;–—-]+(?:das|die|der|es) (?:\\S+ )?(?:muss|mussen|soll|sollen|gehort|gehoren|heisst|sollte|sollten|darf|durfen) \\S+ \\S`,
  `^(?:${NO}[ ,.!:;–—-]+)?(?:so nicht|nicht so|(?:das|es) (?:ist|war) falsch|(?:das|es) stimmt (?:so )?nicht|so war das nicht gemeint|(?:das )?(?:war )?nicht (?:das,? )?was ich|das (?:meinte|wollte) ich nicht|das habe ich nicht gemeint)\\b(?:[^,;:.–—-]{0,20})[ ,;:.!–—-]+(?!bitte nochmal|sorry)\\S+ \\S+ \\S`,
  `\\b(?:wir|dieses projekt|das projekt|dieses repo\\S*|das team)\\b(?: \\S+)? (?:verwenden|benutzen|nutzen|nehmen|schreiben|testen|bauen|verwendet|benutzt|nutzt|lauft|setzen|setzt|arbeiten|formatieren|benennen) .*(?:,? (?:und )?(?:nicht|nie|kein\\w*) |\\bstatt\\b|\\banstatt\\b|\\banstelle\\b)(?!mehr|so)`,
  `\\b${HERE} (?:verwenden|benutzen|nutzen|nehmen|schreiben|testen|bauen|setzen|gilt|wird|werden|heissen) .*(?:,? (?:und )?(?:nicht|nie|kein\\w*) |\\bstatt\\b|\\banstatt\\b|\\banstelle\\b)(?!mehr|so)`,
  `^(?:bitte )?${DO} ${NAMED}\\S.*(?:\\bstatt\\b|\\banstatt\\b|\\banstelle\\b|,? (?:und )?nicht (?!nur|mehr|so)\\S)`,
  `\\bdu (?:musst|sollst|solltest) (?:\\S+ ){1,8}?(?:verwenden|benutzen|nutzen|nehmen)\\b`,
  `\\bdu hattest \\S+ .*(?:sollen|mussen)\\b`,
  `^(?:bitte )?hore? (?:bitte )?auf,? \\S+ \\S`,
  `^${NEVER} (?:wieder|mehr) \\S+ \\S`,
)

const DECISIONS = make(
  "decision",
  `^(?:die |unsere )?entscheidung(?: ist)?:? \\S+ \\S`,
  `\\bwir bleiben (?:\\S+ ){0,3}?bei (?!der|dem|ihm|diese\\w|unser)\\S`,
  `\\bwir haben (?:uns )?(?:\\S+ ){0,8}?(?:beschlossen|entschieden|geeinigt|festgelegt)\\b`,
  `\\bwir (?:nehmen|verwenden|nutzen|benutzen|setzen) (?!das\\b|den\\b|die\\b|dem\\b|diese\\w|es\\b|ihn\\b|sie\\b|einfach|mal\\b|noch|dann|uns\\b|nur\\b|nicht|alle\\b)(?:ab jetzt |kunftig |ab sofort |jetzt |hier |immer |auf )*\\S+ \\S`,
  `\\bwir (?:steigen|wechseln|migrieren|stellen) (?:\\S+ ){0,4}?(?:auf|zu|von) \\S`,
  `^(?:dann )?(?:lasst? uns|wir wollen) (?!das|es|mal|die zeit)(?:\\S+ ){1,6}?(?:verwenden|benutzen|nutzen|nehmen|bleiben|setzen|gehen)\\b`,
)

const PREFERENCES = make(
  "preference",
  `^(?:bitte )?${DO} (?:\\S+ ){0,10}?(?:${ALWAYS}|${NEVER})\\b`,
  `^(?:bitte )?(?:${ALWAYS}|${NEVER}) (?:\\S+ ){1,8}?\\S+(?:en|ern|eln)$`,
  `^(?:bitte )?(?:${ALWAYS}|${NEVER}|nur) (?:\\S+ ){0,3}?${CODE}$`,
  `\\bwir \\S+ ${CODE} (?:\\S+ )?(?:nur|${ALWAYS}) \\S`,
  `^(?:bitte )?(?:vor|nach|bei|in|fur) jede[mrn]? ${CODE} \\S`,
  `^(?:alle |jede[rs]? |neue |unsere |die )?${CODE}(?: (?:in|im|fur|von) \\S+)? (?:bitte |hier )?(?:${ALWAYS}|${NEVER}|nur|mussen|muss|sollen|soll|sollten|sollte|durfen|darf|gehoren|gehort|bekommen|brauchen|braucht) \\S`,
  `^(?:alle |jede[rs]? |neue |unsere |die )?${CODE} (?:bitte |hier |werden |sind |schreiben wir |gehoren )?(?:bitte |hier )?(?:${ALWAYS} |nur )?(?:auf englisch|auf deutsch|in englisch|kleingeschrieben|klein geschrieben|in camelcase|in snake_case|in kebab-case|im imperativ|in kleinbuchstaben)\\b`,
  `\\bwir \\S+ (?:\\S+ ){0,5}?(?:${ALWAYS}|${NEVER})\\b (?!noch|wieder)`,
  `\\b(?:${ALWAYS}|${NEVER}) wir \\S`,
  `^(?:ab jetzt|ab sofort|ab heute|von jetzt an|von nun an|kunftig|zukunftig|in zukunft|generell|standardmassig)\\b,? (?!(?:\\S+t )?(?:jede|alle|der|die|das|ein|eine)\\b(?! ${CODE})|soll|muss|mussen|sollen|wird|werden|kann|konnen|darf|durfen)\\S+ \\S`,
  `^(?:bitte )?keine?n? (?!zeit|ahnung|problem|fehler|anderung|sorge|unterschied|ergebnis|antwort|lust|frage|idee|stress|eile)(?!.*\\b(?:mehr|da|gefunden|vorhanden|ist|sind|war|hat|funktioniert|lauft|nutzer|kunden|benutzer|gaste|dafur|dazu)\\b)(?:\\S+ ){0,4}?(?:${CODE}|${UNASKED})\\b`,
  `^(?:in|im|bei|fur) (?:\\S+ )?${CODE}(?: \\S+)? (?:bitte )?(?:kein\\w*|nie|nur|immer|nicht) \\S`,
  `\\b(?:nichts|kein\\w*|nicht|nie|niemals)\\b.*\\b${UNASKED}\\b`,
  `\\b${UNASKED}\\b.*\\b(?:nichts|kein\\w*|nicht|nie|niemals)\\b`,
  `^(?:bitte )?${DO} (?:\\S+ ){0,6}?(?:kein\\w*|nicht) (?:\\S+ ){0,3}?(?:in|im) (?:\\S+ )?${CODE}`,
  `^(?:bitte )?${DO} (?:bitte )?keine?n? (?!fehler|sorgen)(?:\\S+ ){0,3}?${CODE}`,
  `^(?:bitte )?(?:frage?|erst fragen|frag mich) (?:\\S+ ){0,4}?bevor du\\b`,
  `\\bich (?:bevorzuge|hatte lieber|hatte gern\\w*|mochte lieber|mag lieber|arbeite lieber) \\S`,
  `\\bich (?:mag|will|mochte|brauche) (?:\\S+ ){0,3}?keine?n? (?:\\S+ ){0,3}?${CODE}`,
  `^(?:bitte )?vermeide? \\S+ \\S|^verzichte? (?:\\S+ )?auf \\S`,
  `\\b(?:ist|sind) .*\\b(?:verboten|nicht erlaubt|tabu|untersagt)\\b`,
)

const INSIGHTS = make(
  "insight",
  `\\b(?:wird|werden|ist|sind) (?:\\S+ ){0,4}?(?:generiert|automatisch erzeugt|autogeneriert|veraltet)\\b.*\\b(?:nicht|nie|niemals|also|stattdessen|daher)\\b`,
)

const PATTERNS = make(
  "pattern",
  `^(?:bitte )?(?:mache?|schreibe?|baue?|halte?) (?:\\S+ ){0,6}?(?:wie (?:in|bei) \\S+|nach dem (?:muster|vorbild) \\S+)`,
)

const USERS = "(?:nutzer\\w*|benutzer\\w*|anwender\\w*|kunden?|kundin\\w*|gaste|besucher\\w*|admins?|mitglieder)"

export const GERMAN: Rules = {
  fillers:
    /^(?:(?:ok|okay|gut|super|toll|danke|perfekt|ja|ach|hm+|ah|oh|hey|hallo|hi|also|und|aber|so,|bitte|ubrigens|noch was|fast|stimmt|genau|sehr gut|prima|passt)(?:[\s,.!:…–—-]+|$))+/,
  otherNo: NONE,
  signals: [...CORRECTIONS, ...DECISIONS, ...PATTERNS, ...INSIGHTS, ...PREFERENCES],
  exclusions: excludes(
    `\\?["')\\]]*$`,
    `^(?:warum|wieso|weshalb|wer|wie|wo|wann|welche\\w*|was|soll(?:en|te|ten|st)? (?:ich|wir|das|man|die|der)|kann(?:st)? (?:du|ich|man|das)|konnen wir|konntest du|konnten wir|darf ich|hast du|haben wir|ist (?:das|es|der|die)|sind (?:die|das|wir)|nutzen wir|verwenden wir|mussen wir|weisst du)\\b`,
    `^(?:falls|ob|vielleicht|eventuell|angenommen)\\b|^wenn (?!du\\b|wir\\b|ich\\b)`,
    `\\b(?:vielleicht|eventuell|glaube ich|denke ich|weiss nicht|keine ahnung|ist mir egal|ganz egal|wenn du (?:willst|magst|mochtest))\\b`,
    `\\b(?:heute|morgen|gestern|ubermorgen|diesmal|dieses mal|nur (?:dieses )?(?:ein)?mal|ausnahmsweise|vorerst|erst ?mal|furs erste|im moment|momentan|gerade|derzeit|zurzeit|zunachst|einstweilen|noch nicht|vorlaufig|spater|gleich|nachste\\w* (?:woche|sprint)|diese[nrs]? (?:woche|sprint|commit|pr|branch)|bis (?:morgen|freitag|montag|zum|zur|ende|ich|wir|\\d))\\b`,
    `\\bfur (?:diese[nrsm]?|den|das|die) (?:eine[nrs]? )?(?:demo|pr|commit|branch|release|anderung|fall|aufgabe|task|test|ticket|hotfix|version|schritt|datei)\\b`,
    `^(?!ich\\b|wir\\b|du\\b)(?:\\S+ ){1,3}?(?:sagt\\w*|meint\\w*|schreibt|schrieb|findet|will|mochte|empfiehlt|empfehlen|behauptet|verlangt|fordert)\\b`,
    `\\b(?:laut|gemass)\\b|\\b(?:chef\\w*|kolleg\\w+|doku\\w*|docs|anleitung|tutorial|handbuch|er|jemand|reviewer) (?:\\S+ )?(?:sagt\\w*|meint\\w*|will|mochte|empfiehlt|hat gesagt|schreibt|fand|findet)\\b`,
    `^(?:wenn|sobald|beim?|nach|wahrend|immer wenn|jedes ?mal,? wenn|falls|auf) .*(?:klick|druck|tipp|hover|auswahl|scroll|${USERS}|maus|taste|laden|offnen|speichern|anmeld|login|absenden|zeile|knopf|button|leer\\b|fehlschlag|ablauf)`,
    `\\b${USERS}\\b`,
    `^(?:der|die|das|den|dem|ein|eine|einen|jede[rsnm]?|alle|dieser?|dieses|unsere?|im|in der|auf der|am) (?!(?:\\S+ ){0,2}?${CODE}\\b)(?!(?:projekt|team|repo\\S*|entscheidung)\\b)(?:\\S+ ){1,8}?(?:soll|sollen|sollte|sollten|muss|mussen|darf|durfen|kann|konnen|wird|werden|braucht|brauchen|bekommt|bekommen|hat|haben|ist|sind|war|waren)\\b`,
    `^(?!.*\\b(?:du|wir|ich|uns)\\b)(?!(?:alle |jede\\w? |neue |unsere |die )?${CODE}\\b)\\S+ (?:\\S+ )?(?:soll|sollen|sollte|sollten|muss|mussen|darf|durfen|kann|konnen|wird|werden|braucht|brauchen|bekommt|bekommen) `,
    `\\b(?:knopf|schaltflache|button|dialoge?|fenster|startseite|seite|menu|fusszeile|kopfzeile|seitenleiste|symbol|icon|formular|meldung|rechnung\\w*|bestellung\\w*|endpunkt\\w*|endpoint\\w*|preise?n?|farbe|logo|bilder|liste|tabelle|zeilen?|spinner) (?:\\S+ ){0,4}?(?:soll|sollen|sollte|muss|mussen|darf|wird|${ALWAYS}|${NEVER}|ist|sind)\\b`,
    `\\b(?:meetings?|besprechung|ausflug|reise|absagen|abzusagen|abgesagt|januar|februar|marz|april|juni|juli|august|september|oktober|november|dezember|termine?|treffen|demo|prasentation|buro|party|feier|weihnachtsfeier|urlaub|mittag\\w*|kaffee|feierabend|wetter|zug|arzt|krank|deadline|frist|\\d uhr|um (?:zwei|drei|vier|funf|sechs|neun|zehn|\\d+)|verschieb\\w*|verschoben|essen gehen|standup|retro|workshop|kunde kommt|telefon\\w*|rufe? .* an|nummer ist|erreichbar|wochenende|neugestartet|neu gestartet|startet)\\b`,
    `^(?!.*\\b(?:deploy|release|merge|push|veroffentlich))(?:.*\\b)?(?:montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag)[se]?\\b`,
    `\\b(?:server|staging|prod|ci|build|vpn|netz|datenbank|pipeline) (?:ist|wird|war|startet|lauft|geht)\\b`,
    `^(?:nein|nee|ne|no)[ ,.!]+(?:danke|noch nicht|passt|schon gut|alles gut|das (?:reicht|passt|war|ist|geht|funktioniert)|immer noch|es (?:ist|geht)|kein problem|ich|mach (?:weiter|das nochmal)|warte|schau|nochmal|lass (?:mal|es|das)|der andere|die andere|das andere)\\b`,
    `\\b(?:variante|option|vorschlag|plan|moglichkeit|losung|version) (?:[a-d]|\\d|eins|zwei)\\b|\\bnoch ?(?:ein)?mal\\b|\\bruckgangig\\b|\\bmach weiter\\b|\\bnicht mehr notig\\b`,
    `^(?:ich )?(?:hasse|liebe)\\b`,
    `\\b(?:funktioniert|geht|klappt|lauft) (?:\\S+ )?(?:nicht|nie|immer noch|immer)\\b|\\bimmer noch\\b`,
  ),
}
