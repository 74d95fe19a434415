import { excludes, make, NONE, type Rules } from "./signals.ts"

const CODE =
  "(?:(?:nombres? de (?:las |los |la |el )?(?:ramas?|funci\\S+|variables?|clases?|ficheros?|archivos?|tests?|metodos?))|(?:mensajes? de )?commits?|ramas?|pull requests?|prs?|tests?|pruebas|(?:ficheros|archivos) (?:de test|markdown|md|nuevos|generados|de prueba)|archivos?|ficheros?|funciones|metodos|clases|variables?|imports?|importaciones|exports?|modulos?|paquetes?|dependencias?|constantes|interfaces|hooks|migraci\\S+|docstrings|comentarios?|tipos|consultas?|sql|componentes?|changelog|readmes?|codigo|fixtures|mocks?|linter|formateador|logger|console\\.log|emojis?|punto y coma|puntos y comas|tabuladores|tabs|sangria|estilos? en linea|numeros magicos|abreviaturas|todos?\\b|typescript|javascript|python|markdown|any|secretos|scripts?|identificadores|snapshots?|merge|push|main)"
const DO =
  "(?:usa|utiliza|escribe|responde|contesta|pon|haz|crea|ejecuta|corre|pregunta|preguntame|manten|anade|agrega|borra|elimina|guarda|importa|prueba|evita|sigue|revisa|actualiza|construye|llama|nombra|documenta|deja|mete|respeta|formatea|lanza|pasa|explica|muestrame|ensename|commitea|mergea|sube|separa|ordena|mockea|valida|consulta|pide|trabaja|verifica|comprueba|instala|genera|reutiliza|cambia|mueve|coloca|prefiere|recuerda|usen?|use|utilice|escriba|responda|ponga|haga|cree|ejecute|pregunte|anada|evite|mantenga|deje|usad|usar|utilizar|escribir|poner|hacer)"
const ALWAYS = "(?:siempre|sin excepcion)"
const NEVER = "(?:nunca|jamas)"
const HERE =
  "(?:aqui|en (?:este|el|nuestro) (?:proyecto|repo\\S*|codigo|equipo|paquete|servicio)|en esta (?:base de codigo|aplicacion)|este (?:proyecto|repo\\S*)|el equipo)"
const INSTEAD =
  "(?:\\ben vez de|\\ben lugar de|,? (?:y )?\\bno|,? \\bnunca|,? \\bsino|\\bantes que) (?!mas|se|lo|la|me|te|es|esta|hay|ahora|todavia|aun|funciona)\\S"
const UNASKED =
  "(?:sin (?:que (?:yo|te)|preguntar\\S*|consultar\\S*|avisar\\S*|mi|permiso|pedir\\S*|aprobacion|revision|test)|a menos que|salvo que|excepto si (?:yo|te)|hasta que yo|si no te lo (?:pido|he pedido)|antes de preguntar\\S*)"
const NO = "(?:no|nop|mal|incorrecto|para|espera)"
const NAMED = "(?!(?:el|la|los|las) (?:otr|primer|segund|tercer|ultim|anterior|mism)\\S*|eso\\b|esto\\b|ese\\b|esa\\b)"

const CORRECTIONS = make(
  "correction",
  `^${NO} ?[,.;:!–—-]+ ?(?:mejor |por favor,? |solo |${ALWAYS} )*(?:${DO}|hay que|tienes que|debes|deberias|usamos|utilizamos|quiero|queremos|se) ${NAMED}\\S+ \\S`,
  `^${NO} ?[,.;:!–—-]+ ?(?!(?:todavia|aun|gracias|no|ya|es|esta|el|la|hay|he)\\b)(?:mejor )?\\S+(?: \\S+)?(?: \\S+)?,? (?:y )?(?:no|en vez de|en lugar de|nunca) \\S+(?: \\S+)?(?: \\S+)?$`,
  `^${NO} ?[,.;:!–—-]+ ?(?:nunca|jamas|nada de|sin|mejor) \\S+ \\S`,
  `^${NO} ?[,.;:!–—-]+ ?(?:el|la|los|las|eso|esto) (?:\\S+ ){0,3}?(?:debe|deben|va|van|tiene que|tienen que|se llama|es|son) .*(?:, no |en vez de|en lugar de)`,
  `^(?:asi no|de esa forma no|eso no|no es asi|no asi|eso esta mal|esta mal|eso es incorrecto|no (?:era|es) (?:eso|lo que)|no me referia|no queria decir|no te pedi)\\b(?:[^,;:.–—-]{0,30})[ ,;:.!–—-]+(?!prueba otra|lo siento)\\S+ \\S+ \\S`,
  `\\b${HERE}\\b.*\\b(?:usamos|utilizamos|usa|utiliza|se usa|se utiliza|se usan|trabajamos|escribimos|es|esta en|va con|funciona con|seguimos|hacemos|ponemos)\\b .*${INSTEAD}`,
  `\\b(?:usamos|utilizamos|trabajamos con|escribimos|hacemos) .*${INSTEAD}`,
  `^(?:por favor,? )?(?:mejor )?${DO} ${NAMED}\\S.*(?:en vez de|en lugar de|, no |,? y no ) ?\\S`,
  `\\b(?:tienes que|debes|hay que|teneis que|deberias|hemos de) (?:siempre )?(?:usar|utilizar|emplear) ${NAMED}\\S`,
  `\\bdeberias haber \\S+ \\S`,
  `^deja de \\S+r \\S`,
)

const DECISIONS = make(
  "decision",
  `^(?:la |nuestra )?decision(?: es)?:? \\S+ \\S`,
  `\\b(?:hemos decidido|decidimos|hemos acordado|acordamos|hemos elegido|elegimos|optamos por|hemos optado por|nos quedamos con|nos decidimos por|vamos a (?:usar|utilizar|seguir con|quedarnos con|migrar|adoptar|mantener)|vamos con|seguimos con|pasamos a|migramos a|usaremos|utilizaremos|adoptamos) (?!la (?:primera|segunda|tercera|otra|misma|ultima)|el (?:primero|segundo|tercero|otro|mismo|ultimo)|est[aeo]s? |es[aeo]s? |eso\\b)\\S`,
)

const PREFERENCES = make(
  "preference",
  `^(?:por favor,? )?${DO} (?:\\S+ ){0,12}?(?:${ALWAYS}|${NEVER})\\b`,
  `^(?:por favor,? )?(?:${ALWAYS}|${NEVER}) (?:hay que |debes |se |tienes que )?(?:${DO}|\\S{2,}(?:es|as|ar|er|ir))\\b \\S`,
  `^(?:por favor,? )?(?:${ALWAYS}|${NEVER}) (?:usamos|utilizamos|escribimos|hacemos|ponemos|subimos|mergeamos|commiteamos|probamos) \\S`,
  `\\b(?:${ALWAYS}|${NEVER}) (?:hacemos|usamos|subimos|escribimos|mergeamos|commiteamos) .*${CODE}`,
  `^(?:por favor,? )?no (?:me )?\\S{2,}(?:es|as|ar|er|ir)\\b.*\\b${UNASKED}`,
  `\\bno (?:quiero que|debes|puedes|hay que) .*\\b${UNASKED}`,
  `^(?:por favor,? )?no (?:uses|utilices|pongas|escribas|anadas|agregues|crees|importes|metas|hagas|mockees|dejes|commitees|generes|subas|mezcles|abrevies|edites|toques) (?!esto|eso|ese|este|esa|esta|nada|mas|otr|aun|todavia|ahora)(?!.*\\b(?:todavia|aun|ahora)\\b)(?:\\S+ ){0,5}?${CODE}\\b`,
  `^(?:por favor,? )?(?:y )?(?:sin|nada de|ningun|ninguna|prohibidos?|prohibidas?|cero) (?!problema|prisa|cambios|errores|novedad|duda|embargo|mas)(?!.*\\b(?:esta|estan|hay|es|son|funciona|falla|para es[oa]|para est[oa])\\b)(?:\\S+ ){0,3}?${CODE}\\b`,
  `^(?:a partir de ahora|de ahora en adelante|desde ahora|en adelante|en el futuro|por defecto|como regla|por norma|en general)\\b,? (?!(?:cada|tod[oa]s?|el|la|los|las|un|una) (?!${CODE})|se puede|puede|podemos|podran)\\S+ \\S`,
  `^(?:todos |todas )?(?:los |las |el |la |cada |nuestr\\S+ )?${CODE}(?: (?:en|de|del) \\S+)? (?:${ALWAYS}|${NEVER}|deben|debe|tienen que|tiene que|van|va|solo|necesitan?|llevan?) \\S`,
  `^(?:todos |todas )?(?:los |las |el |la |cada )?${CODE}(?: (?:siempre|solo))? en (?:ingles|espanol|minusculas?|mayusculas?|castellano|camelcase|snake_case|kebab-case|imperativo|presente)\\b`,
  `^(?:antes|despues) de (?:cada|hacer|un|subir|mergear|commitear|abrir|cambiar) .*\\b(?:${DO}|hay que|debes|tienes que|${ALWAYS})\\b`,
  `^(?:en|para) (?:los |las |el |la )?${CODE},? (?:${NEVER}|${ALWAYS}|no|nada de|sin|solo) \\S`,
  `\\bprefiero \\S.*(?: a |antes que|en vez de|en lugar de|sobre|frente a|que )\\S|^prefiero (?!no |que no|esper|la otra|el otro|eso|esto)\\S+ \\S+ \\S`,
  `\\bno (?:quiero|me gustan?) (?:ver |que uses |que pongas |tener |los |las |el )*(?:\\S+ )?${CODE}\\b`,
  `^(?:por favor,? )?evita \\S+ \\S`,
  `\\b(?:esta|estan|queda|quedan) (?:terminantemente |totalmente )?prohibid[oa]s?\\b|\\bno (?:esta|estan) permitid[oa]s?\\b|\\bno se (?:permite|puede|debe)n? (?:usar|subir|tocar|editar|mockear) \\S`,
  `^(?:pregunta|preguntame|consultame) (?:siempre )?antes de \\S`,
)

const INSIGHTS = make(
  "insight",
  `\\b(?:se generan?|es generado|son generados|esta generad[oa]|estan generad[oa]s|generad[oa]s? automaticamente|esta obsolet[oa])\\b.*\\b(?:no|nunca|asi que|por eso)\\b`,
)

const USERS =
  "(?:usuari[oa]s?|clientes?(?! (?:de|que|http|api|rest|sql|grpc)\\b)|visitantes|invitad[oa]s|administradores|compradores)"

export const SPANISH: Rules = {
  fillers:
    /^(?:(?:ok|okay|vale|bien|muy bien|perfecto|genial|gracias|si|ah|oh|hm+|hola|oye|bueno|pero|y|por favor|porfa|ademas|casi|por cierto|una cosa mas|entonces|claro|de acuerdo|estupendo)(?:[\s,.!:…–—-]+|$))+/,
  otherNo: NONE,
  signals: [...CORRECTIONS, ...DECISIONS, ...INSIGHTS, ...PREFERENCES],
  exclusions: excludes(
    `\\?["')\\]]*$|^¿`,
    `^(?:por que|quien|como (?!regla|norma)|donde|cual|puedes|podrias|podemos|deberiamos|debemos|sabes)\\b`,
    `^(?:y |pero )?si (?!te\\b|lo\\b)`,
    `\\b(?:quizas?|tal vez|a lo mejor|creo que|no se si|si quieres|da igual|me da lo mismo|supongo|no estoy segur[oa])\\b`,
    `\\b(?:hoy|manana|ayer|por ahora|de momento|por el momento|esta vez|esta semana|este sprint|(?:solo )?(?:por )?una (?:sola )?vez|todavia no|aun no|luego|mas tarde|ahora mismo|temporalmente|provisionalmente|la (?:proxima|semana que viene)|hasta (?:el|la|manana|que (?!yo)))\\b`,
    `\\bpara (?:est[ae]|el|la) (?:pr|pull request|commit|demo|cambio|rama|version|caso|tarea|ticket|hotfix|prueba|paso|release)\\b|\\ben este (?:pr|commit|caso|cambio)\\b`,
    `^(?!yo\\b)(?:\\S+ ){1,3}?(?:dice|dijo|dicen|decia|me dijo|comento|recomiendan?|quiere|prefiere|pide|pidio|opina|sugieren?|insiste)\\b`,
    `\\b(?:segun)\\b|\\b(?:jef[ea]|cliente|companer[oa]s?|colega|documentacion|docs|linter|manual|tutorial|alguien|ella|el|revisor) (?:\\S+ )?(?:dice|dijo|dicen|quiere|recomienda|prefiere|pide|opina)\\b`,
    `^(?:cuando|al|cada vez que|siempre que|despues de que|mientras|en cuanto|tras) (?!(?:hagas|escribas|crees|anadas|cambies|termines|subas|toques|abras|uses|hacer|escribir|crear|anadir|cambiar|terminar|subir|abrir|commitear)\\b)`,
    `\\b${USERS}\\b`,
    `^(?:el|la|los|las|un|una|unos|unas|cada|todos?|todas?|ningun|ninguna|este|esta|nuestr\\S+) (?!(?:los |las |\\S+ )?${CODE}\\b)(?!(?:proyecto|repo\\S*|equipo|decision)\\b)(?:\\S+ ){1,8}?(?:debe|deben|deberia|deberian|tiene|tienen|puede|pueden|necesitan?|lleva|llevan|recibe|reciben|se|aparecen?|es|son|esta|estan|queda|va|van|muestran?|${ALWAYS}|${NEVER})\\b`,
    `\\b(?:boton|botones|dialogos?|ventanas?|pagina|menu|pie de pagina|cabecera|barra lateral|icono|formulario|facturas?|pedidos?|endpoints?|precios?|color|logo|imagen|imagenes|lista|tabla|filas?) (?:\\S+ ){0,4}?(?:debe|deben|tiene|tienen|${ALWAYS}|${NEVER}|se|es|son)\\b`,
    `\\b(?:siempre|nunca) (?:se )?(?:debe|deben|tiene que|aparecen?|muestran?|devuelven?|cierran?|abren?)\\b`,
    `\\b(?:viaje|excursion|cancelar|enero|febrero|marzo|abril|junio|julio|agosto|septiembre|octubre|noviembre|diciembre|reunion|demo|oficina|fiesta|vacaciones|comida|almuerzo|cena|cafe|a las? (?:\\d+|una|dos|tres|cuatro|cinco|seis|nueve|diez)|clima|tiempo hace|tren|medico|presentacion|llamada|llames?|llama a|telefono|numero es|aplazar|posponer|mover la|cumpleanos|retro|standup|taller|fin de semana|reinici\\S+|entrega es)\\b`,
    `^(?!.*\\b(?:despleg|desplieg|deploy|merge|push|sub[ai]|public))(?:.*\\b)?(?:lunes|martes|miercoles|jueves|viernes|sabados?|domingos?)\\b`,
    `\\b(?:servidor|staging|prod|ci|build|vpn|red|base de datos) (?:se )?(?:esta|ha|va|estaba|cae|cayo)\\b`,
    `^no[ ,.!]+(?:gracias|todavia|aun|pasa nada|hace falta|hay|te preocupes|importa|se\\b|es (?:eso|nada|necesario)|esta|sigue|funciona|ya|he|lo se|mira|el otro|la otra|ahora|asi esta|creo|prueba (?:otra|de nuevo)|vuelve|espera)\\b`,
    `\\b(?:opcion|variante|plan|version|propuesta) (?:[a-d]|\\d)\\b|\\b(?:otra vez|de nuevo)\\b`,
    `^(?:odio|detesto|me encanta)\\b|\\b(?:sigue|siguen) (?:sin|fallando|igual|roto)\\b|\\bsiempre (?:he|quise|falla)\\b`,
  ),
}
