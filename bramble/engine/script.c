/* Scripts: what people, signs, chests and rooms say and do. They are short byte strings made by bramble/worlds/script.py.
 *
 * A script runs within one frame until it shows a text; it goes on when the text is closed.
 */
#include "game.h"

/* Keep in the order of OPERATIONS in bramble/worlds/script.py. */
enum {
    OP_END,
    OP_SAY,    /* text */
    OP_ASK,    /* text: ends the script when the answer is no */
    OP_GIVE,   /* treasure, amount */
    OP_TAKE,   /* treasure */
    OP_PAY,    /* rupees, two decimal digits */
    OP_SET,    /* global flag */
    OP_CLEAR,  /* global flag */
    OP_SOLVE,  /* the room: gates and shutters open, hidden things appear */
    OP_MARK,   /* bits of the room's flags */
    OP_SEASON, /* season */
    OP_HOLD,   /* treasure: the hero holds it up until the script ends */
    OP_SOUND,  /* id */
    OP_WARP,   /* group, room, pos, direction */
    OP_IF      /* condition, argument, bytes to skip when it does not hold */
};

/* Keep in the order of CONDITIONS in bramble/worlds/script.py. Bit 7 of a condition negates it. */
enum { IF_OWNS, IF_FLAG, IF_ROOM, IF_RUPEES, IF_ESSENCES, IF_SEASON, IF_TRADE };

static const u8 *code;
static u8 asked;

u8 script_busy(void) { return code != 0; }

void script_start(const u8 *first) {
    code = first;
    asked = 0;
}

static u8 bits_set(u8 value) {
    u8 count = 0;
    for (; value; value &= value - 1) ++count;
    return count;
}

static u8 flag_set(u8 flag) { return global_flags[flag >> 3] & (1 << (flag & 7)); }

static u8 condition_value(u8 condition, u8 argument) {
    switch (condition) {
    case IF_OWNS:
        return owns(argument);
    case IF_FLAG:
        return flag_set(argument);
    case IF_ROOM:
        return *room_flags() & argument;
    case IF_RUPEES:
        return bcd_at_least((const u8 *)&rupees, 0, argument);
    case IF_ESSENCES:
        return bits_set(essences) >= argument;
    case IF_SEASON:
        return (1 << season) & argument;
    default:
        return owns(T_TRADE) && trade_item == argument;
    }
}

u8 condition_holds(u8 condition, u8 argument) {
    u8 value = condition_value(condition & 127, argument) != 0;
    return condition & 128 ? !value : value;
}

static void script_end(void) {
    code = 0;
    shown_treasure = 0;
    if (hero.state == HERO_ITEM) hero.state = HERO_NORMAL;
}

static void hold_up(u8 treasure) {
    shown_treasure = treasure;
    hero.state = HERO_ITEM;
    hero.direction = DOWN;
    sound(SOUND_ITEM);
}

static void change_season(u8 to) {
    if (season == to) return;
    season = to;
    room_reload();
}

/* One step that shows no text. Returns its length. */
static u8 step(void) {
    switch (*code) {
    case OP_GIVE:
        give(code[1], code[2]);
        return 3;
    case OP_TAKE:
        take(code[1]);
        return 2;
    case OP_PAY:
        bcd_subtract((u8 *)&rupees, code[1]);
        hud_stale = 1;
        return 2;
    case OP_SET:
        global_flags[code[1] >> 3] |= 1 << (code[1] & 7);
        return 2;
    case OP_CLEAR:
        global_flags[code[1] >> 3] &= ~(1 << (code[1] & 7));
        return 2;
    case OP_SOLVE:
        room_solve();
        return 1;
    case OP_MARK:
        *room_flags() |= code[1];
        return 2;
    case OP_SEASON:
        change_season(code[1]);
        return 2;
    case OP_HOLD:
        hold_up(code[1]);
        return 2;
    case OP_SOUND:
        sound(code[1]);
        return 2;
    default: /* OP_IF */
        return condition_holds(code[1], code[2]) ? 4 : 4 + code[3];
    }
}

/* Run until a text is shown or the script ends. */
void script_run(void) {
    const u8 *at;
    if (asked) {
        asked = 0;
        if (text_option) {
            script_end();
            return;
        }
    }
    for (;;) {
        at = code;
        switch (*at) {
        case OP_END:
            script_end();
            return;
        case OP_SAY:
        case OP_ASK:
            asked = *at == OP_ASK;
            code = at + 2;
            text_open(at[1], asked);
            return;
        case OP_WARP:
            script_end();
            room_enter(at[1], at[2], at[3], at[4]);
            return;
        default:
            code = at + step();
        }
    }
}
