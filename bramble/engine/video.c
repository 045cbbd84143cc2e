/* Pictures to the screen: tiles, palettes, scrolling, and the queue that carries changes to video memory.
 *
 * The room is drawn in the background layer, a map of 32 x 32 tiles of which the screen shows 20 x 16 below the status
 * bar. Video memory may only be written between two frames, so changes are put in a queue and flushed there.
 * Tile pictures: room tiles in VRAM bank 1, font and sprites in bank 0.
 */
#include "game.h"

#define vram_queue ((u8 *)0xC300)
enum { BACKGROUND = 0x9800, WINDOW = 0x9C00, HUD_PALETTE = 7, MODE_COLUMN = 2, MODE_ATTRIBUTES = 1 };

u8 camera_column, camera_row, scroll_x, scroll_y;
static u8 queue_length;

void queue_byte(u8 value) { vram_queue[queue_length++] = value; }

void queue_head(u16 address, u8 flags, u8 count) {
    queue_byte((u8)(address >> 8));
    queue_byte((u8)address);
    queue_byte(flags);
    queue_byte(count);
}

void queue_end(void) { vram_queue[queue_length] = 0; }

/* True when less than a column would still fit. */
u8 queue_full(void) { return queue_length > 150; }

/* Ends an update: waits until the frame is drawn, shows the result, and waits for the moment of the next update. */
void frame_end(void) {
    queue_end();
    wait_vblank();
    IO(IO_SCROLL_X) = scroll_x;
    IO(IO_SCROLL_Y) = scroll_y;
    oam_dma();
    vram_flush();
    queue_length = 0;
    if (!WORLD->torn) wait_line();
}

/* Background address of a tile of 8 x 8 in the room. */
static u16 cell_address(u8 column, u8 row) {
    return BACKGROUND + ((u16)((row + camera_row) & 31) << 5) + ((column + camera_column) & 31);
}

static u8 picture_of(u8 id) { return WORLD->tile_gfx[WORLD->tile_of_id[id]] << 2; }
static u8 attributes_of(u8 id) { return WORLD->tile_attr[WORLD->tile_of_id[id]]; }

/* Draw one metatile of 16 x 16. */
void draw_cell(u8 pos) {
    u8 picture = picture_of(room_layout[pos]);
    u8 attributes = attributes_of(room_layout[pos]);
    u8 column = (pos & 15) << 1, row = (pos >> 4) << 1, half;
    for (half = 0; half < 2; ++half) {
        u16 address = cell_address(column + half, row);
        queue_head(address, MODE_COLUMN, 2);
        queue_byte(picture + half);
        queue_byte(picture + 2 + half);
        queue_head(address, MODE_COLUMN | MODE_ATTRIBUTES, 2);
        queue_byte(attributes);
        queue_byte(attributes);
    }
}

/* Draw one column of 16 tiles. */
void draw_column(u8 column) {
    u8 row, value;
    const u8 *cell = room_layout + (column >> 1);
    queue_head(cell_address(column, 0), MODE_COLUMN, 16);
    for (row = 0; row < 8; ++row, cell += 16) {
        value = picture_of(*cell) + (column & 1);
        queue_byte(value);
        queue_byte(value + 2);
    }
    queue_head(cell_address(column, 0), MODE_COLUMN | MODE_ATTRIBUTES, 16);
    cell = room_layout + (column >> 1);
    for (row = 0; row < 8; ++row, cell += 16) {
        value = attributes_of(*cell);
        queue_byte(value);
        queue_byte(value);
    }
}

static void draw_row_part(u8 row, u8 column, u8 count, u8 mode) {
    const u8 *cells = room_layout + ((row >> 1) << 4);
    u8 id;
    queue_head(cell_address(column, row), mode, count);
    for (; count; --count, ++column) {
        id = cells[column >> 1];
        queue_byte(mode ? attributes_of(id) : picture_of(id) + (column & 1) + ((row & 1) << 1));
    }
}

/* Draw one row of 20 tiles; it may go over the right end of the background map. */
void draw_row(u8 row) {
    u8 first = 32 - camera_column, mode;
    if (first > 20) first = 20;
    for (mode = 0; mode < 2; ++mode) {
        draw_row_part(row, 0, first, mode);
        if (first < 20) draw_row_part(row, first, 20 - first, mode);
    }
}

/* Draw the whole room, a column a frame. */
void draw_room(void) {
    u8 column;
    for (column = 0; column < 20; ++column) {
        draw_column(column);
        frame_end();
    }
}

static void load_background_colours(const u8 *colours, u8 count) {
    IO(IO_BG_COLOUR_INDEX) = 0x80;
    while (count--) IO(IO_BG_COLOUR) = *colours++;
}

/* Colours of the room: outdoors by season, else by the kind of place (see room_theme in rooms.c). */
void palette_theme(void) {
    extern u8 room_theme;
    u8 theme = room_theme ? room_theme + 3 : season;
    load_background_colours(WORLD->themes + ((u16)theme << 6), 64);
}

/* All white but the status bar, while a room is drawn after a warp. */
void palette_white(void) {
    u8 n;
    IO(IO_BG_COLOUR_INDEX) = 0x80;
    for (n = 0; n < 56; ++n) IO(IO_BG_COLOUR) = n & 1 ? 0x7F : 0xFF;
}

static void fill(u8 *to, u8 value, u16 count) {
    while (count--) *to++ = value;
}

/* Unpack pictures into video memory. A control byte describes eight pieces, lowest bit first: 1 = a byte as it is,
 * 0 = two bytes that repeat what was written before: distance (12 bits) and length less 3. Distance 0 ends it. */
static void unpack(u8 *to, const u8 *from) {
    u8 control = 0, pieces = 0, low, high, length;
    const u8 *source;
    for (;; --pieces, control >>= 1) {
        if (!pieces) {
            control = *from++;
            pieces = 8;
        }
        if (control & 1) {
            *to++ = *from++;
            continue;
        }
        low = *from++;
        high = *from++;
        if (!low && !high) return;
        source = to - (low | ((u16)(high & 15) << 8));
        for (length = (high >> 4) + 3; length; --length) *to++ = *source++;
    }
}

/* Pictures are numbered with a sign: 0-127 at 9000, 128-255 at 8800. */
static void load_pictures(void) {
    IO(IO_VRAM_BANK) = 1;
    unpack((u8 *)0x9000, WORLD->pictures_low);
    unpack((u8 *)0x8800, WORLD->pictures_high);
    fill((u8 *)WINDOW, HUD_PALETTE, 0x400);
    IO(IO_VRAM_BANK) = 0;
    unpack((u8 *)0x9000, WORLD->font);
    unpack((u8 *)0x8000, WORLD->sprites);
    fill((u8 *)WINDOW, 0, 0x400);
}

/* Screen off, pictures in, screen on. */
void video_start(void) {
    u8 n;
    IO(IO_LCD) = 0;
    IO(IO_SOUND_POWER) = 0;
    IO(IO_WRAM_BANK) = 1;
    load_pictures();
    load_background_colours(WORLD->themes, 64);
    IO(IO_SPRITE_COLOUR_INDEX) = 0x80;
    for (n = 0; n < 64; ++n) IO(IO_SPRITE_COLOUR) = WORLD->sprite_palettes[n];
    IO(IO_WINDOW_Y) = 0;
    IO(IO_WINDOW_X) = 7;
    IO(IO_DIALOG_LINE) = 0;
    IO(IO_WINDOW_FULL) = 0;
    scroll_x = 0;
    scroll_y = 240; /* the room begins 16 lines below the top */
    IO(IO_LINE_COMPARE) = 15;
    IO(IO_LCD_STATUS) = 0x40; /* interrupt at the compared line */
    IO(IO_INTERRUPTS_SEEN) = 0;
    IO(IO_INTERRUPTS) = 3;
    IO(IO_LCD) = 0xE7; /* on, window at 9C00, signed tile numbers, sprites of 8 x 16 */
    __asm__("ei");
}
