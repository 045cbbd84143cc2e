/* What the hero owns: treasures, money, keys, items on the buttons. */
#include "game.h"

u8 owns(u8 treasure) { return treasure_flags[treasure >> 3] & (1 << (treasure & 7)); }

static void mark_owned(u8 treasure) { treasure_flags[treasure >> 3] |= 1 << (treasure & 7); }

/* Money and counts are binary-coded decimals, low byte first: two digits a byte. */
static u8 bcd_step(u8 value) {
    ++value;
    return (value & 15) == 10 ? value + 6 : value;
}

/* Add a plain number to a two-byte decimal; it stops at 999. */
void bcd_add(u8 *low, u8 amount) {
    for (; amount; --amount) {
        if (low[0] == 0x99 && low[1] == 0x09) return;
        low[0] = bcd_step(low[0]);
        if (low[0] == 0xA0) {
            low[0] = 0;
            low[1] = bcd_step(low[1]);
        }
    }
}

u8 bcd_at_least(const u8 *low, u8 high_digits, u8 low_digits) {
    return low[1] > high_digits || (low[1] == high_digits && low[0] >= low_digits);
}

/* Subtract two decimal digits; the caller has checked that there is enough. */
void bcd_subtract(u8 *low, u8 digits) {
    u8 value = low[0], borrow = 0;
    if ((value & 15) < (digits & 15)) value -= 6;
    if (low[0] < digits) {
        value -= 0x60;
        borrow = 1;
    }
    low[0] = value - digits;
    if (borrow) low[1] = (low[1] & 15) ? low[1] - 1 : low[1] - 7;
}

/* Put an item for a button on a free one, else into the pack. */
static void stow(u8 item) {
    u8 slot;
    if (!equipped_a) {
        equipped_a = item;
        return;
    }
    if (!equipped_b) {
        equipped_b = item;
        return;
    }
    for (slot = 0; slot < 16; ++slot)
        if (!inventory[slot]) {
            inventory[slot] = item;
            return;
        }
}

static void add_hearts(u8 quarters) {
    health = health + quarters > max_health ? max_health : health + quarters;
    sound(SOUND_HEART);
}

static void add_bombs(u8 amount) {
    for (; amount && bombs < max_bombs; --amount) bombs = bcd_step(bombs);
}

static u8 bit_of_dungeon(void) { return dungeon_index < 8 ? 1 << dungeon_index : 0; }

/* Things that are counted, or change a number as well as being owned. */
static void give_counted(u8 treasure, u8 amount) {
    switch (treasure) {
    case T_RUPEES:
        bcd_add((u8 *)&rupees, amount);
        bcd_add((u8 *)&rupees_collected, amount);
        sound(SOUND_RUPEE);
        break;
    case T_HEART:
        add_hearts(amount);
        break;
    case T_HEART_CONTAINER:
        if (max_health < 64) max_health += 4;
        add_hearts(64);
        break;
    case T_HEART_PIECE:
        heart_pieces = (heart_pieces + 1) & 3;
        if (!heart_pieces && max_health < 64) max_health += 4;
        break;
    case T_BOMBS:
        add_bombs(amount);
        break;
    case T_SMALL_KEY:
        if (dungeon_index < 12) ++small_keys[dungeon_index];
        break;
    case T_BOSS_KEY:
        boss_keys[0] |= bit_of_dungeon();
        break;
    case T_COMPASS:
        compasses[0] |= bit_of_dungeon();
        break;
    case T_MAP:
        dungeon_maps[0] |= bit_of_dungeon();
        break;
    case T_ESSENCE:
        essences |= 1 << (amount - 1);
        sound(SOUND_ESSENCE);
        break;
    case T_TRADE:
        trade_item = amount;
        break;
    }
}

void give(u8 treasure, u8 amount) {
    u8 first = !owns(treasure);
    mark_owned(treasure);
    give_counted(treasure, amount);
    if (treasure == T_SWORD) ++sword_level;
    if (treasure == T_FEATHER) feather_level = 1;
    if (treasure == T_ROD) seasons_obtained |= amount;
    if (first && (treasure == T_SWORD || treasure == T_BOMBS || treasure == T_FEATHER || treasure == T_ROD)) stow(treasure);
    hud_stale = 1;
}

void take(u8 treasure) {
    treasure_flags[treasure >> 3] &= ~(1 << (treasure & 7));
    hud_stale = 1;
}
