/* The dialog box: five rows of the window layer at the bottom of the screen, three of them text.
 *
 * The text being shown can be read in RAM as letters (text_line, WRAM bank 7), line by line. A full line stays there for
 * four frames, so that a reader that looks every fourth frame misses nothing.
 * Control characters: 10 next line, 12 next page, 0 end. Texts are packed: 128 and more stand for a pair of letters.
 */
#include "game.h"

enum { BOX = 0x9C40, BOX_FIRST_LINE = 103, LINE_LENGTH = 16, NEW_LINE = 10, NEW_PAGE = 12, LINE_PAUSE = 4 };
enum { PRINTING = 2, WAITS_MORE = 5, WAITS_CLOSE = 15 };
enum { YES_COLUMN = 3, NO_COLUMN = 10 };

static const u8 *packed;   /* what is still to be unpacked of the text */
static u8 pending[16];     /* second halves of pairs */
static u8 pending_count;
static u8 box_row;     /* rows of the empty box drawn so far; 5 = all */
static u8 column, row; /* where the next letter goes */
static u8 waiting;     /* PRINTING, WAITS_MORE or WAITS_CLOSE */
static u8 line_pause;  /* frames that a full line stays readable in text_line */
static u8 is_choice;
static u8 cursor;

static void bank_write(u8 *address, u8 value) {
    IO(IO_WRAM_BANK) = 7;
    *address = value;
    IO(IO_WRAM_BANK) = 1;
}

static void clear_line(void) {
    u8 i;
    column = 0;
    for (i = 0; i < LINE_LENGTH; ++i) bank_write(text_line + i, 0);
}

static void set_waiting(u8 state) {
    waiting = state;
    bank_write(text_print_state, state);
}

static void queue_icon(u8 at_column, u8 at_row, u8 icon) {
    queue_head(BOX + ((u16)at_row << 5) + at_column, 0, 1);
    queue_byte(icon);
}

static void draw_box_row(u8 at_row) {
    u8 edge = at_row == 0 || at_row == 4, n;
    queue_head(BOX + ((u16)at_row << 5), 0, 20);
    queue_byte(edge ? ICON_CORNER : ICON_SIDE);
    for (n = 0; n < 18; ++n) queue_byte(edge ? ICON_EDGE : ICON_SPACE);
    queue_byte(edge ? ICON_CORNER : ICON_SIDE);
}

/* Show a text; `choice` lets the player answer yes or no (text_option 0 or 1). */
void text_open(u8 id, u8 choice) {
    text_active = 1;
    text_index_low = id;
    text_index_high = 4;
    text_option = 255;
    text_display_mode = 0;
    disabled_objects = 0x81;
    menu_disabled = 1;
    packed = WORLD->texts[id];
    pending_count = 0;
    box_row = row = cursor = line_pause = 0;
    is_choice = choice;
    clear_line();
    set_waiting(PRINTING);
    sword_timer = 0;
    weapon.enabled = 0;
}

static void text_close(void) {
    text_active = 0;
    text_display_mode = 0;
    disabled_objects = 0;
    menu_disabled = 0;
    IO(IO_DIALOG_LINE) = 0;
    set_waiting(0);
    bank_write(text_option_positions, 0);
    bank_write(text_option_positions + 1, 0);
}

static void draw_cursor(void) {
    queue_icon(YES_COLUMN - 1, row + 1, cursor ? ICON_SPACE : ICON_CURSOR);
    queue_icon(NO_COLUMN - 1, row + 1, cursor ? ICON_CURSOR : ICON_SPACE);
    bank_write(text_option_cursor, cursor);
}

static void text_end(void) {
    set_waiting(is_choice ? PRINTING : WAITS_CLOSE);
    if (!is_choice) return;
    text_display_mode = 1;
    bank_write(text_option_positions, YES_COLUMN);
    bank_write(text_option_positions + 1, NO_COLUMN);
    draw_cursor();
}

static void print_letter(u8 letter) {
    queue_icon(column + 2, row + 1, letter - 32);
    if (column < LINE_LENGTH) bank_write(text_line + column, letter);
    ++column;
}

static u8 next_letter(void) {
    u8 letter = pending_count ? pending[--pending_count] : *packed++;
    const u8 *pair;
    while (letter & 128) {
        pair = WORLD->text_pairs + ((letter & 127) << 1);
        pending[pending_count++] = pair[1];
        letter = pair[0];
    }
    return letter;
}

/* Print one letter. Returns 0 when the text stops. */
static u8 advance(void) {
    u8 letter = next_letter();
    if (!letter) {
        text_end();
        return 0;
    }
    if (letter == NEW_PAGE) {
        set_waiting(WAITS_MORE);
        queue_icon(17, 4, ICON_MORE);
        return 0;
    }
    if (letter == NEW_LINE) {
        ++row;
        line_pause = LINE_PAUSE;
        return 0;
    }
    print_letter(letter);
    return 1;
}

static void choose(void) {
    if (keys_new & (KEY_LEFT | KEY_RIGHT)) {
        cursor ^= 1;
        draw_cursor();
    }
    if (keys_new & KEY_B) { /* B only moves to the last answer, as in the original */
        cursor = 1;
        draw_cursor();
    }
    if (!(keys_new & KEY_A)) return;
    text_option = cursor;
    text_close();
}

/* The empty box is drawn a row a frame, and shown when it is complete. */
static void draw_next_box_row(void) {
    draw_box_row(box_row);
    if (++box_row == 5) IO(IO_DIALOG_LINE) = BOX_FIRST_LINE;
}

static void next_page(void) {
    sound(SOUND_TEXT_NEXT);
    box_row = row = 0;
    clear_line();
    set_waiting(PRINTING);
}

void text_update(void) {
    u8 pressed = keys_new & (KEY_A | KEY_B);
    if (box_row < 5) {
        draw_next_box_row();
        return;
    }
    if (line_pause) {
        if (!--line_pause) clear_line();
    } else if (text_display_mode == 1) {
        choose();
    } else if (waiting == WAITS_CLOSE) {
        if (pressed) text_close();
    } else if (waiting == WAITS_MORE) {
        if (pressed) next_page();
    } else if (advance() && (keys_held & (KEY_A | KEY_B))) {
        advance(); /* a held button doubles the speed */
    }
}
