/* Start of the game and the loop that runs once a frame. */
#include "game.h"

/* Random byte: 16-bit xorshift over rng1 and rng2, so that writing those two bytes seeds the game. */
u8 random(void) {
    u16 x = ((u16)rng2 << 8) | rng1;
    if (!x) x = 0xACE1;
    x ^= x << 7;
    x ^= x >> 9;
    x ^= x << 8;
    rng1 = (u8)x;
    rng2 = (u8)(x >> 8);
    return rng1;
}

/* Log an event. */
void sound(u8 id) {
    ((u8 *)0xC000)[sound_queue_tail] = id;
    sound_queue_tail = 0xA0 | ((sound_queue_tail + 1) & 15);
    sound_queue_head = sound_queue_tail;
}

static void new_game(void) {
    max_health = health = displayed_hearts = WORLD->start_health;
    max_bombs = 0x10;
    shield_level = 1; /* as the original has it on a new file: ownership is the treasure flag */
    treasure_flags[0] = 4;
    text_speed = 2;
    displayed_money_pointer = 0xA5;
    season = WORLD->start_season;
    hero.enabled = 1;
    hero.collision_type = 0x80;
    link_object_index = 0xD0;
    rng1 = WORLD->seed_1;
    rng2 = WORLD->seed_2;
    sound_queue_head = sound_queue_tail = 0xA0;
    thread1_state = 3;
    hardware_type = 1;
    room_width_8px = 20;
    room_height_8px = 16;
    transition_boundary_x = 154;
    transition_boundary_y = 121;
    game_state = 1;
}

static void tick_clocks(void) {
    ++frame_counter;
    ++vblank_counter;
    ++play_time;
}

static void read_keys(void) {
    u8 now = read_pad();
    keys_new = now & ~keys_held;
    keys_held = now;
    game_keys_held = link_death_trigger ? 0 : now;
    game_keys_new = link_death_trigger ? 0 : keys_new;
}

/* One frame of play: the hero first, then what he meets. */
static void play_update(void) {
    if ((keys_new & KEY_START) && !menu_disabled && hero.state == HERO_NORMAL && !link_in_air) {
        menu_open();
        return;
    }
    hero_update();
    if (scroll_mode != 1 || text_active || script_busy()) return;
    items_update();
    enemies_update();
    parts_update();
    people_update();
    room_update();
}

static void update(void) {
    if (menu_type) menu_update();
    else if (text_active) text_update();
    else if (script_busy()) script_run();
    else if (scroll_mode == 8) cross_update();
    else play_update();
}

void main(void) {
    video_start();
    new_game();
    room_enter(WORLD->start_group, WORLD->start_room, WORLD->start_pos, WORLD->start_direction);
    hud_stale = 1;
    game_state = 2;
    for (;;) {
        if (hud_stale) hud_draw();
        frame_end();
        read_keys();
        tick_clocks();
        update();
        draw_sprites();
    }
}
