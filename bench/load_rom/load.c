/* The load ROM: a stand-in for a commercial game where only its cost matters.
 *
 * Colour hardware at double speed, 40 sprites, a scrolling background, timer interrupts, twelve moving enemies, rooms
 * that are drawn anew; then it keeps the CPU busy until half of the frame is over, and waits. It keeps position,
 * health and the signs of "in play" where the RAM table has them, so that the environment runs on it unchanged.
 *
 * All twelve enemies are live, so the environment has to decode and compare each of them: twelve of the sixteen slots
 * a commercial game has is a full room, not a typical one, and fewer would flatter the environment.
 * What keeps the CPU busy writes to unused memory (C300): the room flags and other variables that are decoded only
 * when they change do not change there, as they seldom do in a real game.
 */
#define RAM_HERE
#include "ram.h"

#define IO(low) (*(volatile u8 *)(0xFF00 + (low)))
#define TILES ((u8 *)0x8000)
#define BACKGROUND ((u8 *)0x9800)
#define SCRATCH ((volatile u8 *)0xC300)
#define HERO ((Object *)0xD000)
#define ENEMY(i) ((Object *)(0xD080 + ((u16)(i) << 8)))

enum { PAD = 0x00, TIMER = 0x05, TIMER_START = 0x06, TIMER_ON = 0x07, SEEN = 0x0F, LCD = 0x40, STATUS = 0x41, SCROLL_X = 0x43 };
enum { LINE = 0x44, SPEED = 0x4D, VIDEO_BANK = 0x4F, COLOUR_AT = 0x68, COLOUR = 0x69, SPRITE_COLOUR_AT = 0x6A, SPRITE_COLOUR = 0x6B };
enum { ENEMIES = 12, SPRITES_EACH = 3, LINES = 154, VBLANK_LINE = 144, BUSY_LINES = 77 };
enum { KEY_RIGHT = 16, KEY_LEFT = 32, KEY_UP = 64, KEY_DOWN = 128 };

volatile u8 __at(0xC120) vblanks;
volatile u8 __at(0xC121) timer_ticks;
static u16 dice;

static u8 random(void) {
    dice ^= dice << 7;
    dice ^= dice >> 9;
    dice ^= dice << 8;
    return (u8)dice;
}

static void enable_interrupts(void) { __asm__("ei"); }
static void disable_interrupts(void) { __asm__("di"); }
static void wait_for_interrupt(void) { __asm__("halt\nnop"); }
static void change_speed(void) { __asm__("stop\nnop"); }

static u8 read_pad(void) {
    u8 directions, buttons;
    IO(PAD) = 0x20;
    directions = IO(PAD);
    directions = IO(PAD);
    IO(PAD) = 0x10;
    buttons = IO(PAD);
    buttons = IO(PAD);
    IO(PAD) = 0x30;
    return (u8)~((directions << 4) | (buttons & 15));
}

/* Writes one byte of video memory when the screen lets it. */
static void video_write(u8 *at, u8 value) {
    if (IO(LCD) & 0x80)
        while (IO(STATUS) & 2) {}
    *at = value;
}

static void draw_room(void) {
    u16 i;
    dice = 0x1234 + ((u16)active_room << 5);
    for (i = 0; i < 1024; ++i) {
        u8 tile = random() & 7;
        video_write(BACKGROUND + i, tile);
        IO(VIDEO_BANK) = 1;
        video_write(BACKGROUND + i, tile);
        IO(VIDEO_BANK) = 0;
    }
}

static void draw_tiles(void) {
    u16 i;
    for (i = 0; i < 4096; ++i) TILES[i] = random();
    IO(COLOUR_AT) = IO(SPRITE_COLOUR_AT) = 0x80;
    for (i = 0; i < 64; ++i) {
        IO(COLOUR) = random();
        IO(SPRITE_COLOUR) = random();
    }
}

static void set_up_game(void) {
    u8 i;
    health = max_health = 12;
    game_state = 2;
    cutscene_index = scroll_mode = HERO->state = 1;
    transition_state = 2;
    room_width_8px = 20;
    room_height_8px = 16;
    dungeon_index = 0xFF;
    HERO->x = 80;
    HERO->y = 64;
    HERO->enabled = 1;
    for (i = 0; i < ENEMIES; ++i) {
        Object *enemy = ENEMY(i);
        enemy->enabled = 1;
        enemy->id = 9;
        enemy->collision_type = 0x80;
        enemy->health = 2;
        enemy->x = random() & 127;
        enemy->y = 16 + (random() & 63);
        enemy->direction = i & 3;
    }
}

static void enter_room(u8 room) {
    active_room = room;
    room_flags_overworld[room] |= 0x10;
    draw_room();
}

static void move_hero(u8 keys) {
    if (keys & KEY_RIGHT) HERO->direction = 1, ++HERO->x;
    if (keys & KEY_LEFT) HERO->direction = 3, --HERO->x;
    if (keys & KEY_UP) HERO->direction = 0, --HERO->y;
    if (keys & KEY_DOWN) HERO->direction = 2, ++HERO->y;
    if (HERO->x > 156) HERO->x = 5, enter_room(active_room + 1);
    else if (HERO->x < 4) HERO->x = 155, enter_room(active_room - 1);
    if (HERO->y > 124) HERO->y = 5, enter_room(active_room + 16);
    else if (HERO->y < 4) HERO->y = 123, enter_room(active_room - 16);
}

static void move_enemies(void) {
    u8 i;
    for (i = 0; i < ENEMIES; ++i) {
        Object *enemy = ENEMY(i);
        if (enemy->direction & 1) ++enemy->x;
        else --enemy->x;
        if (enemy->direction & 2) ++enemy->y;
        else --enemy->y;
        if (enemy->x > 152 || enemy->x < 8) enemy->direction ^= 1;
        if (enemy->y > 120 || enemy->y < 8) enemy->direction ^= 2;
    }
}

static void draw_sprites(void) {
    u8 i, part, *sprite = oam_shadow;
    for (i = 0; i < ENEMIES; ++i)
        for (part = 0; part < SPRITES_EACH; ++part) {
            *sprite++ = ENEMY(i)->y + 16;
            *sprite++ = ENEMY(i)->x + (part << 3);
            *sprite++ = (i << 1) + part;
            *sprite++ = i & 7;
        }
    for (part = 0; part < 4; ++part) {
        *sprite++ = HERO->y + 16;
        *sprite++ = HERO->x + (part << 3);
        *sprite++ = 0x20 + part;
        *sprite++ = 1;
    }
}

/* Lines since the start of the vertical blank. */
static u8 lines_gone(void) {
    u8 line = IO(LINE);
    return line >= VBLANK_LINE ? line - VBLANK_LINE : line + (LINES - VBLANK_LINE);
}

static void keep_busy(void) {
    u8 i;
    do {
        for (i = 0; i < 8; ++i) SCRATCH[i] = SCRATCH[i + 64] + random();
    } while (lines_gone() < BUSY_LINES && !vblanks);
}

void main(void) {
    disable_interrupts();
    IO(SPEED) = 1;
    IO(PAD) = 0x30;
    change_speed();
    while (IO(LINE) < VBLANK_LINE + 1) {}
    IO(LCD) = 0;
    dice = 0xACE1;
    draw_tiles();
    set_up_game();
    hardware_type = 1;
    enter_room(0x11);
    IO(TIMER_START) = IO(TIMER) = 0x77;
    IO(TIMER_ON) = 4;
    IO(SEEN) = 0;
    IO(0xFF) = 5;
    IO(LCD) = 0x97;
    enable_interrupts();
    for (;;) {
        while (!vblanks) wait_for_interrupt();
        vblanks = 0;
        keys_held = read_pad();
        ++frame_counter;
        move_hero(keys_held);
        move_enemies();
        draw_sprites();
        IO(SCROLL_X) = frame_counter >> 3;
        keep_busy();
    }
}
