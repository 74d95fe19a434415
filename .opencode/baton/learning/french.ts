import { excludes, make, NONE, type Rules } from "./signals.ts"

const CODE =
  "(?:(?:noms? (?:de |des |d')(?:la |l')?(?:branches?|fonctions?|variables?|classes?|fichiers?|tests?|methodes?))|(?:messages? (?:de |du ))?commits?|branches?|pull requests?|prs?|merge requests?|tests?|fichiers? (?:de test|markdown|md|generes?)|fichiers?|fonctions|methodes|classes|variables?|imports?|exports?|modules?|paquets?|dependances?|constantes|interfaces|hooks|migrations?|docstrings|commentaires?|types|requetes?|sql|composants?|changelog|readmes?|code|fixtures|mocks?|linter|formateur|logger|console\\.log|emojis?|points?[- ]virgules?|tabulations|tabs|indentation|styles? (?:en ligne|inline)|nombres magiques|abreviations|todos?|typescript|javascript|python|markdown|any|secrets|scripts?|identifiants|snapshots?|main)"
const DO =
  "(?:utilise[rz]?|emploie|employez|ecri[st]|ecrivez|ecrire|reponds?|repondez|repondre|mets|mettez|mettre|fais|faites|faire|cree[rz]?|lance[rz]?|execute[rz]?|demande[rz]?|garde[rz]?|ajoute[rz]?|supprime[rz]?|importe[rz]?|teste[rz]?|evite[rz]?|suis|suivez|suivre|verifie[rz]?|construi[st]|construisez|appelle[rz]?|nomme[rz]?|documente[rz]?|laisse[rz]?|prends|prenez|passe[rz]?|respecte[rz]?|formate[rz]?|explique[rz]?|montre-moi|comm?ite[rz]?|pousse[rz]?|merge[rz]?|separe[rz]?|trie[rz]?|mocke[rz]?|valide[rz]?|place[rz]?|range[rz]?|prefere[rz]?|reutilise[rz]?|touche[rz]?|modifie[rz]?|change[rz]?|edite[rz]?|installe[rz]?|genere[rz]?|rebase[rz]?|squashe[rz]?|code[rz]?|commente[rz]?|pose[rz]?|previens|prevenez|edite[rz]?|efface[rz]?)"
const ALWAYS = "(?:toujours|systematiquement|sans exception)"
const NEVER = "(?:jamais)"
const HERE =
  "(?:ici|chez nous|dans (?:ce|le|notre) (?:projet|depot|repo\\S*|code|paquet|service)|dans l'equipe|ce (?:projet|depot|repo\\S*)|l'equipe)"
const INSTEAD =
  "(?:,? (?:et )?pas |\\bau lieu d|\\bplutot qu|,? et non |,? jamais |\\ba la place d)(?!encore|besoin|maintenant|grave|de souci|mal\\b)"
const UNASKED =
  "(?:sans (?:que je|me |mon |ma |l'accord|demander|permission|prevenir|validation|autorisation|relecture|revue|test)|sauf si je|a moins que je|tant que je|avant de (?:me |m')?demander|si je ne)"
const NO = "(?:non|nan|faux|stop|attends?)"
const NAMED =
  "(?!(?:le|la|les|l') ?(?:autre|premier|premiere|deuxieme|second|seconde|dernier|derniere|meme)\\b|l'autre|ca\\b|cela\\b)"
const PLEASE = "(?:s'il (?:te|vous) plait,? |stp,? |svp,? |merci de |pense[rz]? a |veille[rz]? a )?"

const CORRECTIONS = make(
  "correction",
  `^${NO} ?[,.;:!–—-]+ ?${PLEASE}(?:plutot |seulement |${ALWAYS} )*(?:${DO}|il faut|tu dois|vous devez|on utilise|on prend|on ecrit|on met|je veux|nous utilisons) ${NAMED}(?:plutot |toujours )?${NAMED}\\S+ \\S`,
  `^${NO} ?[,.;:!–—-]+ ?(?!pas |c'est|ce |ca |il |elle |je |j'|merci|toujours|on )\\S+(?: \\S+)?(?: \\S+)?,? (?:et )?(?:pas|au lieu d\\S+|plutot qu\\S+|jamais) \\S+(?: \\S+)?(?: \\S+)?$`,
  `^${NO} ?[,.;:!–—-]+ ?(?:jamais de|pas de|n'\\S+ jamais|ne \\S+ (?:jamais|pas)) .*\\S+ \\S`,
  `^${NO} ?[,.;:!–—-]+ ?(?:le|la|les|ca|l'\\S+) (?:\\S+ ){0,3}?(?:doit|doivent|va|vont|s'appelle|est|sont) .*${INSTEAD}`,
  `^(?:pas comme (?:ca|cela)|pas ainsi|pas de cette (?:facon|maniere)|ce n'(?:est|etait) pas (?:ca|cela|ce que)|c'est pas (?:ca|ce que)|c'est faux|ca ne va pas|ce n'est pas comme ca|je ne voulais pas dire)\\b(?:[^,;:.–—-]{0,30})[ ,;:.!–—-]+(?!essaie encore|desole)\\S+ \\S+ \\S`,
  `\\b${HERE}\\b.*\\b(?:on|nous|utilise|emploie|tourne|passe|est)\\b .*${INSTEAD}\\S`,
  `\\b(?:on utilise|nous utilisons|on prend|on ecrit|on travaille avec|on emploie|on passe par|on met|on teste) .*${INSTEAD}\\S`,
  `^${PLEASE}${DO} ${NAMED}\\S.*${INSTEAD}\\S`,
  `\\b(?:tu dois|vous devez|il faut|tu devrais|vous devriez) (?:toujours )?(?:utiliser|employer|passer par|se servir|prendre) ${NAMED}\\S`,
  `\\b(?:tu aurais du|il fallait) (?!faire\\b)\\S+ \\S+ \\S`,
  `^${PLEASE}arretez? d(?:e |')\\S+r \\S`,
)

const DECISIONS = make(
  "decision",
  `^(?:la |notre )?decision(?: est)? ?:? \\S+ \\S`,
  `\\b(?:on reste (?:sur|avec)|on part sur|on passe (?:a|sur)|on garde|on a (?:decide|choisi|opte)|nous avons (?:decide|choisi|opte)|nous restons (?:sur|avec)|on va (?:utiliser|garder|rester sur|partir sur|passer a)|nous allons (?:utiliser|garder)|on migre|on adopte|restons sur|utilisons|gardons|partons sur|passons a|adoptons|c'est decide,?) (?!la (?:premiere|deuxieme|seconde|derniere|meme)|le (?:premier|deuxieme|second|dernier|meme)|l'autre|cette?\\b|ces\\b|ca\\b|le contact|en contact)\\S`,
)

const PREFERENCES = make(
  "preference",
  `^${PLEASE}(?:ne |n')?${DO} (?:\\S+ ){0,12}?(?:${ALWAYS}|${NEVER})\\b`,
  `^${PLEASE}(?:ne )?(?:${ALWAYS}|${NEVER}) \\S{2,}(?:er|ir|re)\\b \\S`,
  `^${PLEASE}(?:${ALWAYS}|${NEVER}) (?:de |d')?(?:\\S+ ){0,3}?${CODE}`,
  `\\b(?:ne |n')\\S+ (?:pas|rien|jamais|aucune?)\\b.*\\b${UNASKED}`,
  `^${PLEASE}(?:pas|aucune?|jamais|rien) .*\\b${UNASKED}`,
  `^${PLEASE}(?:ne |n')(?:utilise|mets|ecris|ajoute|cree|importe|fais|mocke|laisse|commite|committe|genere|pousse|melange|edite|touche|squashe)(?:z)? (?:pas|plus) (?!.*\\b(?:encore|maintenant|ca|cela|cette|tout|l'autre)\\b).*\\b${CODE}\\b`,
  `^${PLEASE}(?:et )?(?:pas d(?:e |')|aucune? |jamais d(?:e |')|zero |sans )(?!probleme|souci|soucis|changement|erreur|panique|idee|doute|pression|nouvelles)(?!.*\\b(?:est|sont|a ete|marche|fonctionne|trouve|trouves|reste|pour ca|pour cela)\\b)(?:\\S+ ){0,3}?(?:\\S*')?${CODE}\\b`,
  `^(?:a partir de maintenant|desormais|dorenavant|a l'avenir|a present|par defaut|en general|en regle generale)\\b,? (?!(?:chaque|tou[ts]|toutes|tous|les?|la|une?) (?!${CODE})|(?:on|nous|vous|tu|il|elle|ils) p)\\S+ \\S`,
  `^(?:tous |toutes )?(?:les |le |la |chaque |l'|nos )?${CODE}(?: (?:en|dans|de|du|des) \\S+)? (?:${ALWAYS}|${NEVER}|doivent|doit|seulement|uniquement|vont|va|se mettent|ont besoin) \\S`,
  `^(?:tous |toutes )?(?:les |le |la |chaque |l')?${CODE}(?: (?:toujours|seulement|uniquement|doivent etre|s'ecrivent))? en (?:anglais|francais|minuscules?|majuscules?|camelcase|snake_case|kebab-case|imperatif)\\b`,
  `^(?:avant|apres) (?:chaque|de|tout|toute) (?:\\S+ ){0,4}?(?:${CODE}|comm?iter|pousser|merger)\\b.* \\S+`,
  `^(?:dans|pour|en) (?:les |le |la |l'|nos )?${CODE},? (?:${NEVER}|${ALWAYS}|pas|aucun|ne|uniquement|seulement) \\S`,
  `\\bje prefere \\S+ \\S`,
  `\\bje (?:ne )?(?:veux|souhaite|n'aime|n'veux|aime) (?:pas|plus|aucune?) (?:voir )?(?:de |d'|du |les |la |des )?(?:\\S+ )?${CODE}\\b`,
  `^${PLEASE}evitez? \\S+ \\S`,
  `\\b(?:est|sont) (?:strictement |formellement )?interdit(?:e|s|es)?\\b|\\bn'(?:est|sont) pas (?:autorise|permis)(?:e|s|es)?\\b`,
  `\\b(?:on|nous) (?:ne |n')?\\S+ (?:${ALWAYS}|${NEVER}) .*${CODE}`,
  `^${PLEASE}demandez?(?:-moi)? (?:toujours )?avant (?:de |d'|toute?)\\S*`,
)

const INSIGHTS = make(
  "insight",
  `\\b(?:est|sont) (?:\\S+ ){0,3}?(?:generee?s?|obsoletes?|autogeneree?s?)\\b.*\\b(?:pas|jamais|donc)\\b`,
)

const USERS =
  "(?:utilisateurs?|utilisatrices?|clients?(?! (?:de|existant|qui|http|api|rest|sql|grpc)\\b)|clientes?|visiteurs?|invites|administrateurs?|internautes?|acheteurs?)"

export const FRENCH: Rules = {
  fillers:
    /^(?:(?:ok|okay|d'accord|bien|tres bien|parfait|super|genial|merci|oui|ah|oh|hm+|euh|salut|bonjour|bon|mais|et|alors|au fait|aussi|presque|encore une chose|nickel|c'est mieux|s'il te plait)(?:[\s,.!:…–—-]+|$))+/,
  otherNo: NONE,
  signals: [...CORRECTIONS, ...DECISIONS, ...INSIGHTS, ...PREFERENCES],
  exclusions: excludes(
    `\\?["')\\]»]*\\s*$`,
    `^(?:pourquoi|qui|comment|ou est|quand est|quel\\w*|est-ce|qu'est-ce|peux-tu|pouvez-vous|pourrais-tu|on peut|doit-on|faut-il|tu peux|as-tu|sais-tu|devrait-on|combien)\\b`,
    `^(?:et |mais )?(?:si|s'il (?!te|vous)|au cas ou) ?\\b(?!.*\\bplait\\b)`,
    `\\b(?:peut-etre|je crois|je pense que|je ne sais pas|sais pas|comme tu veux|si tu veux|peu importe|ca m'est egal|je suppose|pas sur)\\b`,
    `\\b(?:aujourd'hui|demain|hier|pour l'instant|pour le moment|cette fois|cette semaine|ce sprint|juste une fois|une seule fois|pas encore|plus tard|tout de suite|temporairement|provisoirement|en ce moment|exceptionnellement|la semaine prochaine|ce matin|ce soir|jusqu'(?:a|au|en))\\b`,
    `\\bpour (?:cette?|ce|le|la|l') ?(?:pr|pull request|commit|demo|demonstration|changement|branche|version|cas|tache|ticket|hotfix|etape|release|fois|modif\\S*)\\b|\\bdans (?:ce|cette) (?:pr|commit|cas)\\b`,
    `^(?!je\\b|on\\b|nous\\b|tu\\b)(?:\\S+ ){1,3}?(?:dit|disent|disait|m'a dit|a dit|ecrit que|recommande\\w*|veut|prefere|demande que|pense que|conseille\\w*|insiste|pretend|trouve)\\b`,
    `\\b(?:selon|d'apres)\\b|\\b(?:chef\\w*|client\\w*(?! (?:de|http))|collegue|doc|docs|documentation|linter|manuel|tuto\\w*|quelqu'un|elle|il|relecteur) (?:\\S+ )?(?:dit|disent|veut|recommande|prefere|a dit|demande)\\b`,
    `^(?:quand|lorsqu\\S+|lorsque|a chaque fois qu\\S+|des qu\\S+|apres que|pendant que|au (?:clic|survol|chargement|demarrage|passage)|en cas d\\S+|a la (?:fermeture|connexion)) (?!(?:tu|vous|on|nous)\\b)`,
    `\\b${USERS}\\b`,
    `^(?:le |la |les |l'|un |une |des |chaque |tous |toutes |tout |toute |aucun |aucune |ce |cette |nos |notre )(?!(?:les |\\S+ )?${CODE}\\b)(?!(?:projet|depot|repo\\S*|equipe|decision)\\b)(?:\\S+ ){0,8}?(?:doit|doivent|devrait|devraient|peut|peuvent|a|ont|recoit|recoivent|s'affiche|est|sont|apparait|se|renvoie|affiche|va|vont|${ALWAYS}|${NEVER})\\b`,
    `\\b(?:bouton|boutons|dialogues?|fenetres?|page|menu|pied de page|en-tete|barre|icone|formulaire|factures?|commandes|endpoints?|prix|couleur|logo|images?|liste|tableau|lignes?) (?:\\S+ ){0,4}?(?:doit|doivent|${ALWAYS}|${NEVER}|se|est|sont|a)\\b`,
    `\\b(?:doit|doivent) (?:toujours|jamais|pouvoir|s'|apparaitre|renvoyer|afficher)`,
    `\\b(?:voyage|sortie|annuler|janvier|fevrier|mars|avril|juin|juillet|aout|septembre|octobre|novembre|decembre|reunion|demo|bureau|fete|vacances|dejeuner|diner|cafe|a \\d+ ?h|\\d+ heures?|midi|meteo|train|medecin|presentation|telephone|numero est|appelle[rz]? jamais|appelle[rz]? (?:\\S+ )?(?:avant|apres)|reporter|decaler|anniversaire|retro|standup|atelier|week-?end|redemarr\\S+|livraison est|point de)\\b`,
    `^(?!.*\\b(?:deploi|deploy|merge|push|pouss|publi|livr))(?:.*\\b)?(?:lundis?|mardis?|mercredis?|jeudis?|vendredis?|samedis?|dimanches?)\\b`,
    `\\b(?:serveur|staging|prod|ci|build|vpn|reseau|base de donnees) (?:est|a|va|etait|redemarre|tombe)\\b`,
    `^(?:non|nan)[ ,.!]+(?:merci|pas (?:encore|besoin|maintenant|vraiment|du tout|grave|la peine)|c'est|ce n'est|ca (?:va|marche|ne)|il|elle|je |j'|toujours|regarde|l'autre|attends|rien|tout va|laisse tomber|reessaie|recommence)`,
    `\\b(?:option|variante|plan|version|proposition) (?:[a-d]|\\d)\\b|\\b(?:encore une fois|a nouveau)\\b`,
    `^(?:je )?(?:deteste|adore|j'adore)\\b|\\b(?:toujours|encore) (?:casse|en panne|rouge|la meme|pareil)\\b`,
  ),
}
