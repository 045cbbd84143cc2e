/* The status bar (two rows at the top) and the item menu, both drawn in the window layer. */
#include "game.h"

enum { WINDOW = 0x9C00, HEARTS = 16, MENU_LAST_ROW = 17, MENU_LIST_ROW = 8, MENU_ITEMS = 4, MENU_ITEM = 1 };

u8 hud_stale;
static u8 menu_row; /* next row to draw; past the last = all drawn */

static void queue_spaces(u8 count) {
    while (count--) queue_byte(ICON_SPACE);
}

static void queue_digit(u8 value) { queue_byte(ICON_ZERO + (value & 15)); }

static void queue_item(u8 item) {
    switch (item) {
    case T_SWORD:
        queue_byte(ICON_SWORD);
        break;
    case T_BOMBS:
        queue_byte(ICON_BOMB);
        break;
    case T_FEATHER:
        queue_byte(ICON_FEATHER);
        break;
    case T_ROD:
        queue_byte(ICON_ROD);
        break;
    default:
        queue_byte(ICON_SPACE);
    }
}

static void queue_letter(u8 letter) { queue_byte(letter - 32); }

static void draw_counts(void) {
    const u8 *money = (const u8 *)&rupees;
    u8 inside = dungeon_index < 12;
    queue_head(WINDOW, 0, 20);
    queue_letter('B');
    queue_item(equipped_b);
    queue_spaces(1);
    queue_letter('A');
    queue_item(equipped_a);
    queue_spaces(2);
    queue_byte(ICON_RUPEE);
    queue_digit(money[1]);
    queue_digit(money[0] >> 4);
    queue_digit(money[0]);
    queue_spaces(1);
    queue_byte(inside ? ICON_KEY : ICON_SPACE);
    if (inside) queue_digit(small_keys[dungeon_index]);
    else queue_spaces(1);
    queue_byte(inside && (boss_keys[0] & (1 << (dungeon_index & 7))) ? ICON_BOSS_KEY : ICON_SPACE);
    queue_spaces(1);
    if (owns(T_BOMBS)) {
        queue_byte(ICON_BOMB);
        queue_digit(bombs >> 4);
        queue_digit(bombs);
        queue_spaces(1);
    } else {
        queue_spaces(4);
    }
}

static void draw_hearts(void) {
    u8 n, first;
    queue_head(WINDOW + 32, 0, 20);
    for (n = 0; n < HEARTS; ++n) {
        first = n << 2;
        if (first >= max_health) queue_byte(ICON_SPACE);
        else if (health >= first + 4) queue_byte(ICON_HEART + 4);
        else queue_byte(ICON_HEART + (health > first ? health - first : 0));
    }
    for (n = 0; n < 4; ++n) queue_byte(essences & (1 << n) ? ICON_ESSENCE : ICON_SPACE);
}

void hud_draw(void) {
    if (queue_full()) return;
    displayed_hearts = health;
    displayed_rupees = rupees;
    draw_counts();
    draw_hearts();
    hud_stale = 0;
}

/* ---- the menu: opened by START; up and down choose, A and B put the chosen item on that button ---- */

static void queue_string(const char *text, u8 width) {
    for (; *text; ++text, --width) queue_letter((u8)*text);
    queue_spaces(width);
}

static const char *item_name(u8 item) {
    switch (item) {
    case T_SWORD:
        return "Sword";
    case T_BOMBS:
        return "Bombs";
    case T_FEATHER:
        return "Feather";
    case T_ROD:
        return "Season rod";
    default:
        return "";
    }
}

static void draw_item_row(u8 mark, u8 item) {
    queue_spaces(2);
    queue_byte(mark);
    queue_spaces(1);
    queue_item(item);
    queue_spaces(1);
    queue_string(item_name(item), 14);
}

static void draw_owned_row(u8 treasure, u8 icon, const char *name) {
    queue_spaces(4);
    queue_byte(owns(treasure) ? icon : ICON_SPACE);
    queue_spaces(1);
    queue_string(owns(treasure) ? name : "", 14);
}

static void draw_menu_row(u8 row) {
    u8 entry = row - MENU_LIST_ROW;
    queue_head(WINDOW + ((u16)row << 5), 0, 20);
    if (entry < MENU_ITEMS) {
        draw_item_row(menu_cursor_page0 == entry ? ICON_CURSOR : ICON_SPACE, inventory[entry]);
        return;
    }
    switch (row) {
    case 3:
        queue_string("  On the buttons", 20);
        break;
    case 4:
        draw_item_row('A' - 32, equipped_a);
        break;
    case 5:
        draw_item_row('B' - 32, equipped_b);
        break;
    case 7:
        queue_string("  In the pack", 20);
        break;
    case 13:
        queue_string("  Always with you", 20);
        break;
    case 14:
        draw_owned_row(T_BRACELET, ICON_BRACELET, "Bracelet");
        break;
    case 15:
        draw_owned_row(T_FLIPPERS, ICON_FLIPPERS, "Flippers");
        break;
    default:
        queue_spaces(20);
    }
}

void menu_open(void) {
    menu_type = MENU_ITEM;
    menu_load_state = 0;
    menu_active_state = 1;
    menu_cursor_page0 = 0;
    menu_row = 2;
    sound(SOUND_MENU_OPEN);
}

static void menu_close(void) {
    menu_type = 0;
    menu_load_state = 0;
    IO(IO_WINDOW_FULL) = 0;
    hud_stale = 1;
    sound(SOUND_MENU_CLOSE);
}

static void swap_with(u8 *button) {
    u8 item = inventory[menu_cursor_page0];
    inventory[menu_cursor_page0] = *button;
    *button = item;
    menu_row = 4;
    hud_stale = 1;
}

/* The rows of the menu are drawn one a frame; then it listens. */
static u8 drawing(void) {
    if (menu_row > MENU_LAST_ROW) return 0;
    draw_menu_row(menu_row);
    ++menu_row;
    if (menu_row > MENU_LAST_ROW) {
        menu_load_state = 1;
        IO(IO_WINDOW_FULL) = 1;
    }
    return 1;
}

static void move_cursor(u8 by) {
    menu_cursor_page0 = (menu_cursor_page0 + by) & (MENU_ITEMS - 1);
    menu_row = MENU_LIST_ROW;
}

/* One button at a time. (As a chain of tests of keys_new, sdcc 4.2 made wrong code: it kept the value in a register that
 * it used for something else.) */
void menu_update(void) {
    if (drawing()) return;
    switch (keys_new) {
    case KEY_START:
        menu_close();
        break;
    case KEY_UP:
        move_cursor(255);
        break;
    case KEY_DOWN:
        move_cursor(1);
        break;
    case KEY_A:
        swap_with(&equipped_a);
        break;
    case KEY_B:
        swap_with(&equipped_b);
        break;
    }
}
